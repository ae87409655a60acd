"""Run the command line with ``python -m lloydia``."""

from __future__ import annotations

import sys

from lloydia.cli import main

if __name__ == "__main__":
    sys.exit(main())
