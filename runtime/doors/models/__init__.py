"""The models door: finds the model that a string names, calls it, and tells how it went."""
