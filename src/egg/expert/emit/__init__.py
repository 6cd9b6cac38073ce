"""The C++ printer: kernels of the loop nest as one C++ text, and the recipe that builds it.

`print_cpp(layout, schedules)` returns a `CppUnit`: its `source` refers to schedule constants `<kernel>_<knob>` that
`definitions(values)` puts ahead of it, so a sweep changes numbers without printing anew.

Knobs, by kernel form:

- rows in parallel: `threads` (0: all that torch uses), `grain` (rows, or tiles of columns, of one chunk; a single chunk
  runs on the calling thread alone), `stream` (outputs written past the caches; only where the schedule has the knob)
- `mapping="inner"`: `split` (parts of each stage's outermost loop; 0: one for each thread), `threads`
- without `columns`: `lanes` (8, 16, 32, 64: block of the vectorised loop and number of partial results)
- with `columns`: `tile` (columns of one tile, which is the vectorised loop)
"""

from egg.expert.emit.build import load_cpp
from egg.expert.emit.unit import CppFunction, CppUnit, definitions, print_cpp

__all__ = ["CppFunction", "CppUnit", "definitions", "load_cpp", "print_cpp"]
