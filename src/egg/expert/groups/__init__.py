"""Programs to layouts: which definitions share a kernel, and which loops each kernel has.

The central idea is row-local fusion (`joining.py`): definitions share a kernel when there are row loops such that each
reader of a row needs what the others make of that row only. Then a row goes through all of them while it is in the
cache. Softmax, norms, losses, cumulative sums, pooling and pointwise chains are all that one case.
"""

from __future__ import annotations

from egg.expert.groups.grouping import Grouping as Grouping
from egg.expert.groups.layout import group as group
