"""Write a checksum of every fit in a table of cases, or compare them with those written before.

``python examples/checksums.py > before.txt`` fits each case on the processor, and
``python examples/checksums.py --against before.txt`` fits them again, on another commit or another
machine.  With ``--device cuda`` the rows are on a GPU; the checksums are the same.  The exit status
is 1 if a single bit differs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lloydia import KMeans, MiniBatchKMeans, k_means_batched
from lloydia.backends.numpy_first import compiled_only

# Rows, features, clusters: of each kind of kernel that an engine chooses by shape.
SHAPES = (
    (300, 2, 3), (20_000, 2, 16), (20_000, 3, 100), (4_000, 1, 7), (5_000, 5, 40), (3_000, 8, 17),
    (4_000, 9, 20), (6_000, 16, 64), (3_000, 33, 50), (5_000, 64, 256), (2_000, 100, 300),
    (1_000, 768, 40), (6_000, 24, 1_500),
)  # fmt: skip
# Shapes that every variant below is fitted at.
TRIED = ((20_000, 3, 16), (4_000, 24, 60))
ALGORITHMS = ("lloyd", "elkan", "hamerly", "exponion", "yinyang", "filtering")
VARIANTS: dict[str, dict[str, Any]] = {
    "random": {"init": "random"},
    "farthest": {"init": "farthest"},
    "k-means||": {"init": "k-means||"},
    "array": {"init": "array"},
    "three starts": {"n_init": 3},
    "tol=0": {"tol": 0.0},
    "few iterations": {"max_iter": 3},
    "keep empty clusters": {"init": "empty", "empty": "keep"},
    "relocate empty clusters": {"init": "empty"},
    "weights": {"weights": True},
    "offset": {"shift": 1e4},
    "small grid of values": {"levels": 5},
}


class Case(NamedTuple):
    """A fit: its name in the list of checksums, the shape and type of its rows, and the rest."""

    name: str
    shape: tuple[int, int, int]
    dtype: str
    options: dict[str, Any]


def cases() -> Iterator[Case]:
    """Return all cases."""
    for shape, dtype in product(SHAPES, ("float32", "float64")):
        yield case("default", shape, dtype)
    for shape, dtype, (name, options) in product(TRIED, ("float32", "float64"), VARIANTS.items()):
        yield case(name, shape, dtype, **options)
    for shape, algorithm in product(TRIED, ALGORITHMS):
        yield case(algorithm, shape, "float32", algorithm=algorithm)
    for shape in TRIED:
        yield case("float16", shape, "float16")
        yield case("mini batches", shape, "float32", minibatch=True)
        yield case("ten data sets", (shape[0] // 20, *shape[1:]), "float32", sets=10)


def case(name: str, shape: tuple[int, int, int], dtype: str, **options: Any) -> Case:
    """Return a case, whose name says all about it."""
    return Case(f"{' x '.join(map(str, shape))} {dtype} {name}", shape, dtype, options)


def rows(case: Case) -> np.ndarray:
    """Return rows around 2 k places: every NumPy draws a RandomState's numbers alike (NEP 19)."""
    n, d, k = case.shape
    n *= case.options.get("sets", 1)
    rng = np.random.RandomState(n + d + k)
    X = 4.0 * rng.random_sample((2 * k, d))[rng.randint(0, 2 * k, n)]
    X += rng.random_sample((n, d))
    if levels := case.options.get("levels"):
        X = np.floor(levels * X / 5.0)
    return (X + case.options.get("shift", 0.0)).astype(case.dtype)


@compiled_only()
def fit(case: Case, device: str) -> str:
    """Return the SHA-256 of all that a fit by compiled kernels returns."""
    warnings.simplefilter("ignore")  # of clusters that stay empty, and rows that are all alike
    n, d, k = case.shape
    options, X = dict(case.options), rows(case)
    for name in ("shift", "levels"):
        options.pop(name, None)
    weights = (np.arange(len(X)) % 5).astype(float) if options.pop("weights", False) else None
    start = X[:: len(X) // k][:k].astype("float32" if case.dtype == "float16" else case.dtype)
    if options.get("init") == "array":
        options["init"] = start
    elif options.get("init") == "empty":
        options["init"] = np.concatenate([start[:-2], start[:2] + 1000])
    if device == "cuda":
        import torch

        X = torch.from_numpy(X).cuda()
        weights = None if weights is None else torch.from_numpy(weights).cuda()
        if isinstance(options.get("init"), np.ndarray):
            options["init"] = torch.from_numpy(options["init"]).cuda()
    if sets := options.pop("sets", None):
        return digest(*k_means_batched(X.reshape(sets, n, d), k, random_state=0))
    if options.pop("minibatch", False):
        model = MiniBatchKMeans(k, random_state=0, batch_size=512).fit(X)
    else:
        model = KMeans(k, random_state=0, **options).fit(X, sample_weight=weights)
    return digest(model.labels_, model.cluster_centers_, model.inertia_, model.n_iter_)


def digest(*parts: Any) -> str:
    """Return the SHA-256 of arrays and numbers, wherever they are."""
    sha = hashlib.sha256()
    for part in parts:
        array = np.asarray(part.cpu() if hasattr(part, "cpu") else part)
        # The width of an integer is the platform's.
        sha.update(array.astype("<i8" if array.dtype.kind == "i" else array.dtype).tobytes())
    return sha.hexdigest()[:32]


def main() -> int:
    """Write the checksums, or compare them; return 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--against", type=Path, metavar="FILE", help="checksums written before")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--only", default="", help="cases whose names hold this text")
    options = parser.parse_args()
    some = [case for case in cases() if options.only in case.name]
    if not some:
        parser.error(f"no case has {options.only!r} in its name")
    # An algorithm is the processor's choice; on a GPU "lloyd" is the one there is.
    if options.device == "cuda":
        some = [case for case in some if case.options.get("algorithm", "lloyd") == "lloyd"]
    before = {}
    if options.against:
        lines = options.against.read_text().splitlines()
        before = {name: sha for sha, name in (line.split(" ", 1) for line in lines)}
    n_different = 0
    context = get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        for case, sha in zip(some, pool.map(fit, some, [options.device] * len(some))):
            if not options.against:
                print(sha, case.name, flush=True)
            elif before.get(case.name) != sha:
                n_different += 1
                print(f"DIFFERS: {case.name}: {before.get(case.name, 'not there')}, now {sha}")
    if options.against:
        print(f"{len(some)} fits, {n_different} differ")
    return bool(n_different)


if __name__ == "__main__":
    sys.exit(main())
