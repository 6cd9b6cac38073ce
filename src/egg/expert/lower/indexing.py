"""indexing"""

from __future__ import annotations

from egg.expert.lower.build import Lowering

LOWERINGS: dict[str, Lowering] = {}
