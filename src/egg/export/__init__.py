"""The winner as something to take away."""
