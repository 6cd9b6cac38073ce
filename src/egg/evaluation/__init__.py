"""Runs candidates and the reference apart, in worker processes, and says what is right and how fast it is.

`evaluator.LocalEvaluator` is the way in; `examination` leads one candidate through its phases, `tiers` says how much is
done. `workers/` are the processes, `roles/` what runs in them, `correctness/` and `timing/` the two judgements.
Code of a candidate runs under `roles/` only.
"""
