"""Compaction's doors: where a conversation can be cut, and what stands for the part cut off."""
