"""What is right: the float64 oracle, the draws of inputs and weights, the comparison and every tolerance."""
