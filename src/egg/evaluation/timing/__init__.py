"""How fast it is: order of blocks, legs, statistics, the ladder of baselines."""
