"""The experiments without the command line's libraries.

python -m lloydia.ladder.experiments T --where cuda --out DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lloydia.ladder.experiments import EXPERIMENTS, run
from lloydia.ladder.experiments.figures import line
from lloydia.ladder.experiments.lab import Lab


def main() -> None:
    """Run some experiments, and print a line for each measurement."""
    parser = argparse.ArgumentParser(prog="python -m lloydia.ladder.experiments")
    parser.add_argument("experiments", nargs="+", help=", ".join(EXPERIMENTS))
    parser.add_argument("--where", choices=("cpu", "cuda", "all"), default="cpu")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    lab = Lab(asked.where, asked.scale)
    try:
        for found, _ in run(asked.experiments, lab, asked.out):
            print(line(found), flush=True)
    except (ImportError, ValueError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
