"""What a fresh process waits for: the first fit ever, a later first fit, and the import.

    python benchmarks/startup.py                  the table
    python benchmarks/startup.py --device cuda    that of a GPU
    python benchmarks/startup.py --save           keep the figures under results/
    python benchmarks/startup.py --against ../old/src    compared with another commit

Seconds are from the start of a process to the result, interpreter and imports included; what the
interpreter does at exit is not.  Modules have their bytecode, as installed packages do.  "Empty
cache" is a compile cache folder made for that run; "warm cache" is the same folder afterwards.  The
import is what `import lloydia` adds to `import sklearn.cluster`: the median difference of processes
that take turns.

With `--against`, processes of both sources take turns.  Seconds are the processor's, from the
imports done to the result, so that other programs change them little.  After a first fit with
"auto", a process fits with another algorithm, twice; "first fit and elkan" is the first fit, plus
what the first of these two took longer.  `git archive COMMIT src | tar x -C ../old` makes such a
folder.

On a GPU, seconds are from PyTorch and Lloydia imported, and the rows on the GPU, to the result.
After the first fit the same process makes others, each twice: "more" is what the first of both took
longer, and "kernels" is how many it compiled or loaded.  Of a sweep, these are the most of one k
and the kernels of all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from rich import box
from rich.console import Console
from rich.table import Table

import lloydia
from lloydia.algorithms import ALGORITHMS
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

OWN_SECONDS = """
import json, time
import numpy
from lloydia import KMeans
import lloydia.estimators.kmeans
X = numpy.random.default_rng(0).normal(size=({n}, {d})).astype("{dtype}")
def seconds(algorithm="auto"):
    begin = time.process_time()
    KMeans({k}, random_state=0, algorithm=algorithm).fit(X)
    return time.process_time() - begin
print(json.dumps([seconds(), seconds(), seconds("{algorithm}") - seconds("{algorithm}")]))
"""

# Rows, features, type and clusters on a GPU.
CUDA_CASES = (
    (1_000_000, 64, "float32", 256),
    (1_000_000, 3, "float32", 16),
    (1_000_000, 3, "float64", 16),
    (200_000, 768, "float32", 1000),
)
CUDA_FIT = """
import json, time
from concurrent.futures import Future
import numpy, torch
from lloydia import KMeans
from lloydia.backends.cuda.runtime import forms
from lloydia.stopping import Labels
import lloydia.backends.cuda.engine

compiled, compiled_now = [], forms.compiled_now
forms.compiled_now = lambda *args: compiled.append(args) or compiled_now(*args)

def settle():
    # Threads may still compile what only later fits need.
    for kernel in list(forms._found.values()):
        if isinstance(kernel, Future):
            kernel.exception()

def seconds(k, X, weights=None, **options):
    options = {{"random_state": 0, "max_iter": 20, **options}}
    torch.cuda.synchronize()
    begin = time.perf_counter()
    KMeans(k, **options).fit(X, sample_weight=weights)
    torch.cuda.synchronize()
    return time.perf_counter() - begin

X = torch.randn({n}, {d}, device="cuda", dtype=torch.{dtype})
weights = numpy.random.default_rng(0).random({n})
print(json.dumps(["first fit", seconds({k}, X), len(compiled)]))
for what, k, rows, options in (
    ("the same again", {k}, X, {{}}),
    ("max_iter=7", {k}, X, {{"max_iter": 7}}),
    ("tol=0", {k}, X, {{"tol": 0.0}}),
    ("stop=Labels(0.01)", {k}, X, {{"stop": Labels(0.01)}}),
    ("another seed", {k}, X, {{"random_state": 1}}),
    ("init='random'", {k}, X, {{"init": "random", "n_init": 1}}),
    ("weights", {k}, X, {{"weights": weights}}),
    ("fewer rows", {k}, X[: {n} // 2 - 1], {{}}),
    ("k + 3", {k} + 3, X, {{}}),
):
    settle()
    compiled.clear()
    first = seconds(k, rows, **options)
    settle()
    print(json.dumps([what, first - seconds(k, rows, **options), len(compiled)]))
compiled.clear()
low = (2, 5, 17, 60, 250, 1000)
sweep = low if {d} <= 8 else (64, 100, 200, 300, 700, 1500, 4096)
more = [seconds(k, X) - seconds(k, X) for k in sweep]
settle()
print(json.dumps([f"any k of a sweep, {{sweep[0]}} to {{sweep[-1]}}", max(more), len(compiled)]))
"""
FLASH_FIT = """
import json, time
import torch
from flash_kmeans import batch_kmeans_Euclid

X = torch.randn(1, {n}, {d}, device="cuda", dtype=torch.{dtype})
torch.cuda.synchronize()
begin = time.perf_counter()
batch_kmeans_Euclid(X, {k}, max_iters=20, tol=-1.0)
torch.cuda.synchronize()
print(json.dumps(["flash-kmeans, first fit", time.perf_counter() - begin, 0]))
"""


@dataclass(frozen=True)
class Figure:
    """One row of the table, in seconds."""

    what: str
    seconds: float
    target: float | None = None
    kernels: int | None = None
    device: str | None = None
    before: float | None = None

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


def compared(what: str, shape: tuple[int, int, str, int], other: str) -> list[Figure]:
    """Return processor seconds of first fits beside those of other sources, in turns."""
    n, d, dtype, k = shape
    own = str(Path(lloydia.__file__).parents[1])
    found: dict[str, dict[str, list[float]]] = {own: {}, other: {}}
    for algorithm in ALGORITHMS[1:]:
        program = OWN_SECONDS.format(n=n, d=d, dtype=dtype, k=k, algorithm=algorithm)
        for sources, times in found.items():
            with tempfile.TemporaryDirectory() as cache:
                environment = {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": sources}
                (first, second, more), (warm, *_) = (
                    lines(program, environment)[0] for _ in range(2)
                )
            for name, value in (
                ("first fit, empty cache", first),
                ("second fit of that process", second),
                ("first fit, kernels of those fits on disk", warm),
                (f"first fit and {algorithm}", first + more),
            ):
                times.setdefault(name, []).append(value)
    return [
        Figure(f"{name} ({what})", median(values), before=median(found[other][name]))
        for name, values in found[own].items()
    ]


def lines(program: str, environment: dict[str, str]) -> list[list]:
    """Return what a fresh interpreter prints in an environment, such as that of a cache."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def cuda_fits(n: int, d: int, dtype: str, k: int, flash: bool) -> list[Figure]:
    """Return the first fits of a shape on a GPU, and how much longer others take at first."""
    import torch

    shape, name = f"{n:,} x {d}, {dtype}, k = {k:,}", torch.cuda.get_device_name()
    program = CUDA_FIT.format(n=n, d=d, dtype=dtype, k=k)
    with tempfile.TemporaryDirectory() as cache:
        environment = {"TRITON_CACHE_DIR": cache}
        (what, cold, kernels), *later = lines(program, environment)
        _, warm, _ = lines(program, environment)[0]
    figures = [
        Figure(f"{what}, empty cache ({shape})", cold, 5.0, kernels, name),
        Figure(f"{what}, warm cache ({shape})", warm, 1.0, kernels, name),
        *(Figure(f"more for {what} ({shape})", s, 1.0, count, name) for what, s, count in later),
    ]
    if flash and dtype == "float32":
        with tempfile.TemporaryDirectory() as cache:
            flash_fit = FLASH_FIT.format(n=n, d=d, dtype=dtype, k=k)
            for what, took, _ in lines(flash_fit, {"TRITON_CACHE_DIR": cache}):
                figures.append(Figure(f"{what}, empty cache ({shape})", took, device=name))
    return figures


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
    where = figures[0].device or cpu_name()
    result = Table(title=f"Fresh processes on {where}", box=box.SIMPLE_HEAD)
    result.add_column("what")
    for head in ("seconds", "before", "ratio", "kernels", "target", ""):
        result.add_column(head, justify="right")
    for figure in figures:
        target, verdict = "", ""
        if figure.target is not None:
            target = f"{figure.target:.1f}"
            verdict = "[red]missed" if figure.missed else "[green]met"
        kernels = "" if figure.kernels is None else str(figure.kernels)
        before = ("", "")
        if figure.before is not None:
            before = f"{figure.before:.2f}", f"{figure.seconds / figure.before:.2f}"
        result.add_row(figure.what, f"{figure.seconds:.2f}", *before, kernels, target, verdict)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save", action="store_true", help="append the rows to results/")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--against", metavar="SRC", help="sources to compare with, on the CPU")
    options = parser.parse_args()
    if options.save and options.against:
        parser.error("--against counts other seconds than the kept ones: leave --save out")
    busy = load()
    if options.against:
        other = str(Path(options.against).resolve())
        figures = [figure for what, case in CASES.items() for figure in compared(what, case, other)]
    elif options.device == "cuda":
        flash = find_spec("flash_kmeans") is not None
        figures = [figure for case in CUDA_CASES for figure in cuda_fits(*case, flash)]
    else:
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
