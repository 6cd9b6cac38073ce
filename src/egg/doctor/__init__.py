"""Looks at the machine: what is installed, how fast it is, whether it can tell a small slowdown, what confines code."""
