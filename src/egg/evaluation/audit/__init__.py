"""Whether a task can tell a good kernel from a trivial answer, found out before anything is scored.

`auditor` asks and decides, `verdict` is the pure decision, `known` the shipped list of flawed tasks; `gate` and
`answers` run in a reference worker.
"""
