"""Lloydia beside scikit-learn's lloyd: same data, start, iterations and threads, in one run.

    python benchmarks/foundation.py                        all cases
    python benchmarks/foundation.py --cases 1M,3,16 iris   some of them
    python benchmarks/foundation.py --quick                a tenth of the rows, three rounds
    python benchmarks/foundation.py --save                 keep the figures under results/

Data are Gaussian blobs that overlap, so that neither side converges within the 20 iterations.  A
case is refused, and no time is shown, if the two sides' iteration counts differ, if fewer than
99.9 % of their labels agree, or if Lloydia's algorithms differ in a single bit.  Rounds alternate
which side goes first; a time is the median round's, and a ratio is the median over rounds of
scikit-learn's time over Lloydia's (above 1: Lloydia is faster).  iris is the whole fit with
defaults, a new seed each round.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
import sklearn.cluster
from machine import cpu_name, keep, load
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_iris, make_blobs
from threadpoolctl import threadpool_limits

import lloydia

ITERATIONS = 20
LEAST, MOST = 7, 51  # rounds
PATIENCE = 4.0  # seconds within which a quick case goes on from LEAST to MOST rounds
OTHERS = ("lloyd", "elkan", "hamerly")

Row = dict[str, Any]


class Refused(Exception):
    """The two sides did not compute the same thing, so their times must not be compared."""


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    n: int
    d: int
    k: int
    dtype: str
    whole: bool = False  # a whole fit with defaults, not a fixed number of iterations


CASES = [
    Case("100k,2,5", 100_000, 2, 5, "float32"),
    Case("1M,3,16", 1_000_000, 3, 16, "float32"),
    Case("200k,16,64", 200_000, 16, 64, "float32"),
    Case("50k,64,256", 50_000, 64, 256, "float32"),
    Case("20k,128,512", 20_000, 128, 512, "float32"),
    Case("200k,8,100", 200_000, 8, 100, "float64"),
    Case("iris", 150, 4, 3, "float64", whole=True),
]


def data(case: Case, n: int) -> np.ndarray:
    """Return `n` rows: iris, or blobs that overlap (centres lie about 8 sqrt(d) apart)."""
    if case.name == "iris":
        return load_iris().data
    spread = 1.5 * np.sqrt(case.d)
    X, _ = make_blobs(n, case.d, centers=case.k, cluster_std=spread, random_state=0)
    return X.astype(case.dtype)


def same_start(case: Case, X: np.ndarray) -> dict[str, Any]:
    """Return the parameters that make both sides do the same work."""
    rows = np.random.default_rng(0).choice(len(X), case.k, replace=False)
    fixed = {} if case.whole else {"tol": 0, "max_iter": ITERATIONS}
    return {"init": X[rows], "n_init": 1, **fixed}


def compare(case: Case, X: np.ndarray, threads: int) -> Row:
    """Return what both sides computed from the same start; raise Refused unless it is the same."""
    start = same_start(case, X)
    model = lloydia.KMeans(case.k, **start, n_threads=threads).fit(X)
    for algorithm in OTHERS:
        other = lloydia.KMeans(case.k, **start, algorithm=algorithm).fit(X)
        for name in ("labels_", "cluster_centers_", "inertia_", "n_iter_"):
            if not np.array_equal(getattr(model, name), getattr(other, name)):
                raise Refused(f"{algorithm} and {model.algorithm_} differ in {name}")
    peer = sklearn.cluster.KMeans(case.k, **start).fit(X)
    if model.n_iter_ != peer.n_iter_:
        raise Refused(f"{model.n_iter_} iterations here, {peer.n_iter_} in scikit-learn")
    agree = float(np.mean(model.labels_ == peer.labels_))
    if agree < 0.999:
        raise Refused(f"only {agree:.3%} of the labels agree with scikit-learn's")
    return {
        "algorithm": model.algorithm_,
        "n_iter": int(model.n_iter_),
        "labels_agree": agree,
        "n_distances": int(model.n_distances_),
    }


def contenders(case: Case, X: np.ndarray, threads: int) -> tuple[Callable, Callable]:
    """Return the two fits to time, each a function of the round's number."""
    ours, theirs = lloydia.KMeans, sklearn.cluster.KMeans
    if case.whole:
        return (
            lambda number: ours(case.k, random_state=number).fit(X),
            lambda number: theirs(case.k, random_state=number).fit(X),
        )
    start = same_start(case, X)
    return (
        lambda _: ours(case.k, **start, n_threads=threads).fit(X),
        lambda _: theirs(case.k, **start).fit(X),
    )


def alternate(ours: Callable, theirs: Callable, least: int, most: int) -> np.ndarray:
    """Return the seconds of each round, shape (rounds, 2); the sides take turns to go first."""
    sides = (ours, theirs)
    rounds: list[list[float]] = []
    begin = time.perf_counter()
    while len(rounds) < least or (len(rounds) < most and time.perf_counter() - begin < PATIENCE):
        seconds = [0.0, 0.0]
        for side in (0, 1) if len(rounds) % 2 else (1, 0):
            start = time.perf_counter()
            sides[side](len(rounds))
            seconds[side] = time.perf_counter() - start
        rounds.append(seconds)
    return np.array(rounds)


def measure(case: Case, quick: bool, threads: int) -> Row:
    """Compare, then time; return the case's row."""
    n = case.n // 10 if quick and not case.whole else case.n
    X = data(case, n)
    row: Row = {**asdict(case), "n": n, "threads": threads}
    try:
        found = compare(case, X, threads)
    except Refused as why:
        return row | {"refused": str(why)}
    rounds = alternate(*contenders(case, X, threads), *((3, 3) if quick else (LEAST, MOST)))
    per = 1 if case.whole else found["n_iter"]
    ratios = rounds[:, 1] / rounds[:, 0]
    return (
        row
        | found
        | {
            "rounds": len(rounds),
            "ms": 1e3 * median(rounds[:, 0]) / per,
            "sklearn_ms": 1e3 * median(rounds[:, 1]) / per,
            "ratio": median(ratios),
            "ratio_quartiles": np.quantile(ratios, [0.25, 0.75]).tolist(),
        }
    )


def table(rows: list[Row], threads: int) -> Table:
    """Return the rows as a table: ms per iteration (iris: of the whole fit)."""
    result = Table(title=f"{cpu_name()}, {threads} threads; ms per iteration", box=box.SIMPLE_HEAD)
    for head in ("n, d, k", "dtype", "algorithm"):
        result.add_column(head, no_wrap=True)
    for head in ("iterations", "labels agree", "Lloydia", "scikit-learn", "ratio", "quartiles"):
        result.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        label = "iris, whole fit" if row["whole"] else f"{row['n']:,}, {row['d']}, {row['k']}"
        if "refused" in row:
            result.add_row(label, row["dtype"], "[red]refused")
            continue
        low, high = row["ratio_quartiles"]
        result.add_row(
            label,
            row["dtype"],
            row["algorithm"],
            str(row["n_iter"]),
            f"{row['labels_agree']:.3%}",
            f"{row['ms']:.3f}",
            f"{row['sklearn_ms']:.3f}",
            f"[{'green' if row['ratio'] >= 1 else 'red'}]{row['ratio']:.2f}",
            f"{low:.2f}-{high:.2f}",
        )
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES], metavar="CASE")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, three rounds")
    parser.add_argument("--save", action="store_true", help="append the rows to results/")
    parser.add_argument("--threads", type=int, default=2, help="of both sides (default 2)")
    options = parser.parse_args()
    if options.quick and options.save:
        parser.error("--quick shrinks the cases, so its figures are not kept: leave out --save")
    chosen = [case for case in CASES if not options.cases or case.name in options.cases]
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # scikit-learn leaves SMT threads idle
    busy = load()
    progress = track(chosen, "measuring", console=Console(stderr=True), transient=True)
    with threadpool_limits(options.threads):
        rows = [measure(case, options.quick, options.threads) | {"load": busy} for case in progress]
    console = Console()
    console.width = max(console.width, 120)
    console.print(table(rows, options.threads))
    refused = [row for row in rows if "refused" in row]
    for row in refused:
        console.print(f"{row['name']}: refused, {row['refused']}")
    if options.save:
        print(f"kept in {keep('foundation', [row for row in rows if 'refused' not in row])}")
    return int(bool(refused))


if __name__ == "__main__":
    sys.exit(main())
