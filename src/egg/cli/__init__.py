"""The command line: parses, composes the rooms, and alone writes to the terminal."""
