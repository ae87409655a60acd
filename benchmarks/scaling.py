"""An iteration and the seedings on several GPUs of one host, compared with one GPU.

    python benchmarks/scaling.py --save                 1, 2, 4, ... GPUs at (64M, 128, 1024)
    python benchmarks/scaling.py --cases 8000000,128,1024 1000000,16,64

Rows are made on the first GPU, in groups around as many centres as are looked for, as float32 that
half precision holds.  All fits start from the same rows, and the labels, the centres, the inertia
and the number of iterations of one GPU are compared with the others', bit for bit, before there is
a time; so are the rows that seedings choose.  An iteration's time is that of one more, see
:mod:`marginal`; what happens once, such as copying the rows to their GPUs, is given separately
(`place_s`).  So is what each GPU takes for its share by itself: GPUs differ, and none waits for
less than the slowest.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator, Sequence

import torch
from marginal import SEEDING_HEADS, Row, seeded, seeding_cells, show, timed

from lloydia.backends import choose
from lloydia.backends.parts import Parts
from lloydia.bench.machine import keep
from lloydia.data.arrays import on_host

CASE = (64_000_000, 128, 1024)
FEW, MANY = 12, 32  # iterations of the two runs: by then launches are recorded
ROUNDS = 3
PIECE = 1 << 20  # rows that are made together
HEADS = (
    *("rows, features, clusters", "GPUs", "ms an iteration", "times one GPU", "slowest share"),
    *SEEDING_HEADS,
)


def make(n: int, d: int, k: int) -> torch.Tensor:
    """Return rows around k centres, on the first GPU: float32 that half precision holds."""
    generator = torch.Generator("cuda:0").manual_seed(0)
    new = {"generator": generator, "device": "cuda:0"}
    centers = torch.randn((k, d), **new)
    X = torch.empty((n, d), device="cuda:0")
    for first in range(0, n, PIECE):
        piece = X[first : first + PIECE]
        own = torch.randint(k, (len(piece),), **new)
        piece.copy_((centers[own] + torch.randn(piece.shape, **new)).half())
    return X


def measure(case: Sequence[int], counts: Sequence[int]) -> Iterator[Row]:
    """Give a row for each number of GPUs; the first is one."""
    n, d, k = case
    X = make(n, d, k)
    start = on_host(X[:: n // k][:k])
    first: Row = {}
    for count in counts:
        gc.collect()
        began = time.perf_counter()
        engine = choose("cuda:" + ",".join(map(str, range(count))), X, None, None)
        placed = time.perf_counter() - began
        found = timed(engine, start, FEW, MANY, ROUNDS) | seeded(engine, k, ROUNDS)
        del found["counted"]
        parts = engine.group.parts if isinstance(engine, Parts) else []
        alone = (choose("auto", part.X, None, None) for part in parts)
        row: Row = {
            "n": n, "d": d, "k": k, "gpus": count, "place_s": placed,
            "alone_ms": [timed(share, start, FEW, MANY, ROUNDS)["ms"] for share in alone],
            "device": torch.cuda.get_device_name(0),
        } | found  # fmt: skip
        first = first or row
        if (row["answer"], row["picks"]) != (first["answer"], first["picks"]):
            raise SystemExit(f"{count} GPUs give other bits than one at {n}, {d}, {k}.")
        yield row | {"ratio": first["ms"] / row["ms"]}
        del engine, parts
    del X
    torch.cuda.empty_cache()


def cells(row: Row) -> list[str]:
    """Return what a row's figures are shown as."""
    return [
        f"{row['n']:,}, {row['d']}, {row['k']}",
        str(row["gpus"]),
        f"{row['ms']:.3f}",
        f"{row['ratio']:.2f}",
        f"{max(row['alone_ms']):.3f}" if row["alone_ms"] else "",
        *seeding_cells(row),
    ]


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", default=[",".join(map(str, CASE))], metavar="N,D,K")
    parser.add_argument("--save", action="store_true", help="keep the figures")
    options = parser.parse_args()
    there = torch.cuda.device_count()
    if there < 2:
        raise SystemExit(f"This needs two GPUs or more, and PyTorch sees {there}.")
    counts = [count for count in (1, 2, 4, 8) if count <= there]
    rows: list[Row] = []
    for case in options.cases:
        for row in measure([int(part) for part in case.split(",")], counts):
            rows.append(row)
            print(row, flush=True)
    show(HEADS, list(map(cells, rows)))
    if options.save:
        print(keep("scaling", rows))


if __name__ == "__main__":
    main()
