"""What to try next, what to keep and when to stop: pure decisions from the recorded attempts, one a file."""

from egg.planning.planner import RulePlanner

__all__ = ["RulePlanner"]
