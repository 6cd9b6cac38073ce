"""From the operator graph to the tensor program: one family of operators a file, one table row an overload."""

from __future__ import annotations

from egg.expert.lower.driver import lower
from egg.expert.lower.linear import as_reduction

__all__ = ["as_reduction", "lower"]
