"""What runs inside a worker: one file a role, and what both roles share."""
