"""What can be told of a candidate besides its results: what its text holds, and whose kernels really ran."""
