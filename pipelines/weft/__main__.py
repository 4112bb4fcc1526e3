"""`python -m weft`: the same as the command `weft`."""

from __future__ import annotations

import sys

from weft.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
