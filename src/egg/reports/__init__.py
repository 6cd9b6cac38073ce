"""A run as text: terminal table, Markdown, JSON and one HTML page. Pure functions; none opens a file."""
