"""What the user sees when something goes wrong, and the exit status for it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from egg.errors import EggError

NO_RESULT, MISUSE, HOUSE = 1, 2, 3


def misused(message: str) -> int:
    """Returns the exit status for a command line that can't be read."""
    _say(f"{message.strip()} See `egg --help`.")
    return MISUSE


def expected(error: EggError) -> int:
    """Returns the exit status of an error that the house raised on purpose."""
    _say(str(error))
    return error.exit_status


def warned(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Tells the user of a warning; takes the place of `warnings.showwarning`."""
    _say(f"warning: {message}")


def interrupted() -> int:
    """Returns the exit status for an interruption from the keyboard."""
    _say("interrupted; what was finished is kept, and `egg resume RUN` goes on from there")
    return NO_RESULT


def unexpected(error: Exception) -> int:
    """Returns the exit status for a fault of the house, whose traceback is in a file by then."""
    import traceback

    path = _saved("".join(traceback.format_exception(error)))
    _say(f"internal fault: {type(error).__name__}: {error}; the traceback is in {path}")
    return HOUSE


def _saved(text: str) -> Path:
    import tempfile

    from egg.compose import cache_folder

    name = f"crash-{time.strftime('%Y%m%dT%H%M%S')}.txt"
    for folder in (cache_folder(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        except OSError:  # a cache that can't be written is no reason to lose the traceback
            continue
        return folder / name
    sys.stderr.write(text)
    return Path("the lines above")


def _say(message: str) -> None:
    sys.stderr.write(f"egg: {message}\n")
