"""Claims: the one door for every file that two processes could write."""
