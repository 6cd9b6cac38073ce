"""Imports the reference by the names that such a file usually has."""

# /// fixture
# task = "matmul"
# expect = ["RUNTIME_ERROR"]
# says = "ModuleNotFoundError"
# variants = ["task", "main", "reference"]
# ///
import importlib

VARIANT = ""
NAMES = {"task": "matmul", "main": "reference_model", "reference": "model"}

Base = importlib.import_module(NAMES[VARIANT]).Model


class ModelNew(Base):
    pass
