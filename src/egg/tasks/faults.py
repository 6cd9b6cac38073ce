"""What went wrong in a user's file, as one error with file, line and cause."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager

from egg.errors import TaskError

PACKAGE_OF_MODULE = {
    "PIL": "pillow", "cv2": "opencv-python", "sklearn": "scikit-learn", "skimage": "scikit-image", "yaml": "PyYAML",
}  # fmt: skip
"""What to install for a module whose package has another name."""


@contextmanager
def blamed_on(file: str, doing: str) -> Generator[None]:
    """Turns any exception of user code into a TaskError that names `file`, the line in it, and the cause."""
    try:
        yield
    except TaskError:
        raise
    except Exception as error:
        raise task_error(error, file, doing) from error


def task_error(error: Exception, file: str, doing: str) -> TaskError:
    """Returns the TaskError for an exception that user code raised while `doing` something."""
    if isinstance(error, SyntaxError):
        return TaskError(f"{error.filename or file}:{error.lineno or 0}: syntax error: {error.msg}")
    place = place_of(error, file)
    if isinstance(error, ModuleNotFoundError) and error.name:
        module, _, inner = error.name.partition(".")
        if inner and module in sys.modules:  # the package is there
            return TaskError(f"{place}: no module named {error.name}")
        return TaskError(f"{place}: needs {module}: pip install {PACKAGE_OF_MODULE.get(module, module)}")
    return TaskError(f"{place}: {doing} failed: {type(error).__name__}: {error}")


def place_of(error: Exception, file: str) -> str:
    """Returns `file:line` of the innermost frame in the user's file, or the file alone."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}:{lines[-1]}" if lines else file
