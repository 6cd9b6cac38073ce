"""Find, load and validate tasks."""
