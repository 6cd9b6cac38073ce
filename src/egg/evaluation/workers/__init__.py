"""Processes that run what is not trusted: starting, speaking, confining, ending. Nothing here knows what they do."""
