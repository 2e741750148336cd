"""The command line: commands are built here, replies and events are printed."""
