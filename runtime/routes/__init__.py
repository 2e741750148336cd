"""Which owner takes which command: one module for each owner, put together in `system.py`."""
