"""The test harness: simulated worlds, explored orders, conformance kits, replayed traces.

Embedders import it as `tenure.testing` (runtime/_testing.py names what that has).
"""
