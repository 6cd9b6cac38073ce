"""Runs candidates and the reference apart, in worker processes, and says what is right and how fast it is.

`evaluator.LocalEvaluator` is the way in. `workplace.Workplace` is where work runs; `tolerance` says what is right;
`tiers` says how much is done.
"""
