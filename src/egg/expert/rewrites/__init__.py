"""Rewrites of the operator graph: one file each, listed in `registry.py`."""
