"""Candidates that a person wrote: read from a file, a text or a class, and checked as far as text can tell."""
