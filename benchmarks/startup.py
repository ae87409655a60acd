"""What a fresh process waits for: the first fit ever, a later first fit, and the import.

    python benchmarks/startup.py           the table
    python benchmarks/startup.py --save    keep the figures under results/

Seconds are from the start of a process to the result, interpreter and imports included; what the
interpreter does at exit is not.  Modules have their bytecode, as installed packages do.  "Empty
cache" is a compile cache folder made for that run; "warm cache" is the same folder afterwards.  The
import is what `import lloydia` adds to `import sklearn.cluster`: the median difference of processes
that take turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

from lloydia.bench.machine import cpu_name, keep, load

ROUNDS = 5
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
CASES = {
    "150 x 4, float64, k = 3": (150, 4, "float64", 3),
    "20k x 16, float32, k = 32": (20_000, 16, "float32", 32),
}
FIT = """
import numpy
from {package} import KMeans
X = numpy.random.default_rng(0).normal(size=({n}, {d})).astype("{dtype}")
assert KMeans({k}, random_state=0).fit(X).labels_.max() == {k} - 1
"""


@dataclass(frozen=True)
class Figure:
    """One row of the table, in seconds."""

    what: str
    seconds: float
    target: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the figure is above its target."""
        return self.target is not None and self.seconds > self.target


def seconds(program: str, **environment: str) -> float:
    """Return how long a fresh interpreter takes to the end of `program`, which must succeed."""
    keeping = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    begin = time.time()
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport time; print(time.time())"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**keeping, **environment},
    )
    return float(done.stdout.split()[-1]) - begin


def first_fits(what: str, n: int, d: int, dtype: str, k: int) -> list[Figure]:
    """Return a first fit's time with an empty compile cache and with it warm, and the peer's."""
    ours, peer = (
        FIT.format(package=package, n=n, d=d, dtype=dtype, k=k)
        for package in ("lloydia", "sklearn.cluster")
    )
    with tempfile.TemporaryDirectory() as cache:
        cold = seconds(ours, NUMBA_CACHE_DIR=cache)
        warm = median(seconds(ours, NUMBA_CACHE_DIR=cache) for _ in range(ROUNDS))
    return [
        Figure(f"first fit, empty cache ({what})", cold, 6.0),
        Figure(f"first fit, warm cache ({what})", warm, 1.0),
        Figure(f"scikit-learn's fit ({what})", median(seconds(peer) for _ in range(ROUNDS))),
    ]


def imports() -> list[Figure]:
    """Return how long scikit-learn's import takes, and what Lloydia's adds to it."""
    base, both = "import sklearn.cluster", "import sklearn.cluster, lloydia"
    seconds(both)  # reads the files once, so that every round finds them in memory
    pairs = [(seconds(base), seconds(both)) for _ in range(ROUNDS)]
    return [
        Figure(base, median(alone for alone, _ in pairs)),
        Figure("import lloydia adds", median(second - alone for alone, second in pairs), 0.3),
    ]


def table(figures: list[Figure]) -> Table:
    """Return the figures beside their targets."""
    result = Table(title=f"Fresh processes on {cpu_name()}", box=box.SIMPLE_HEAD)
    result.add_column("what")
    for head in ("seconds", "target", ""):
        result.add_column(head, justify="right")
    for figure in figures:
        target, verdict = "", ""
        if figure.target is not None:
            target = f"{figure.target:.1f}"
            verdict = "[red]missed" if figure.missed else "[green]met"
        result.add_row(figure.what, f"{figure.seconds:.2f}", target, verdict)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save", action="store_true", help="append the rows to results/")
    options = parser.parse_args()
    busy = load()
    seconds("import lloydia.estimators.kmeans, lloydia.backends.cpu")
    figures = [figure for what, case in CASES.items() for figure in first_fits(what, *case)]
    figures += imports()
    console = Console()
    console.width = max(console.width, 100)
    console.print(table(figures))
    if options.save:
        rows = [{**vars(figure), "load": busy} for figure in figures]
        print(f"kept in {keep('startup', rows, Path(__file__).parent / 'results')}")
    return int(any(figure.missed for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
