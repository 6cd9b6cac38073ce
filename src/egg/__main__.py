"""`python -m egg`, the same as the command `egg`."""

from __future__ import annotations

from egg.cli.app import main

if __name__ == "__main__":
    main()
