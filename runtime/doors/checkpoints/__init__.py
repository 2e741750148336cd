"""The files that tools change, as they were: kept, and taken back."""
