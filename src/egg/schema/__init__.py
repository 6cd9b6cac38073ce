"""Frozen records, one concept a file; pydantic and the standard library, never torch."""
