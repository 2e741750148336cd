"""The packages door: fetches, checks, places, sweeps and reads packages; see door.py."""
