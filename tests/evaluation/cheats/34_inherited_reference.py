"""Inherits the reference and so computes nothing of its own."""
# /// fixture
# task = "matmul"
# expect = ["RUNTIME_ERROR"]
# says = "NameError"
# bypass = "inherited Model"
# ///


class ModelNew(Model):  # noqa: F821
    pass
