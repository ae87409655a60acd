"""Iterations and seedings of rows that do not fit on a GPU, compared with rows in its memory.

    python benchmarks/out_of_core.py --save                16,000,000 x 128 (8.2 GB), k = 1024
    python benchmarks/out_of_core.py --case 1000000,32,64 --rounds 5

Rows are made in groups around as many centres as are looked for, as float32: once as they come, and
once as half precision holds them.  The GPU may take so much memory that

* of the first, half-precision copies of all rows stay, or next to nothing;
* of the others, which travel in half precision, half of the rows stay, or next to none.

All fits start from the same rows, and labels, centres, inertia and the number of iterations are
compared with those in memory, bit for bit, before there is a time; so are the rows that seedings
choose.  These are 64, since k-means++ reads all rows once for each.  An iteration's time is that of
one more, see :mod:`marginal`, and so is `sent`, what it sends, counted; `floor` is what that takes
over the bus at the speed of one large copy from pinned memory, measured in the same run.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np
import torch
from marginal import SEEDING_HEADS, Row, seeded, seeding_cells, show, timed
from numpy.typing import NDArray

from lloydia.backends import choose
from lloydia.backends.cuda.out_of_core.group import OutOfCore
from lloydia.backends.cuda.out_of_core.room import Room
from lloydia.backends.cuda.out_of_core.sending import Array
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.engine import Engine
from lloydia.backends.parts import Parts
from lloydia.bench.machine import cpu_name, keep

CASE = (16_000_000, 128, 1024)
FEW, MANY = 2, 6
SEEDS = 64
PIECE = 1 << 20  # rows that are made together
COPIED, COPIES = 1 << 28, 5  # bytes of a copy that measures the bus, and how many are timed
# Beside rows: clusters, in bytes a number of a centre.
CLUSTERS = 256
DEVICE = place("cuda")
HEADS = (
    *("rows", "what stays", "memory, GB", "ms an iteration", "of in memory", "sent, GB"),
    "ms at the bus's speed",
    *(f"{head}, {SEEDS} seeds" for head in SEEDING_HEADS),
)


def make(n: int, d: int, k: int, narrow: bool) -> NDArray[np.float32]:
    """Return rows around k centres, on the host; `narrow` is whether half precision holds them."""
    new: dict[str, Any] = {
        "generator": torch.Generator(DEVICE).manual_seed(0),
        "device": DEVICE,
    }
    centers = torch.randn((k, d), **new)
    X = np.empty((n, d), dtype=np.float32)
    for first in range(0, n, PIECE):
        m = min(PIECE, n - first)
        rows = centers[torch.randint(k, (m,), **new)] + torch.randn((m, d), **new)
        X[first : first + m] = (rows.half().float() if narrow else rows).cpu().numpy()
    return X


def synchronize() -> None:
    """Wait for the device."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize(DEVICE)


def bus() -> float:
    """Return the bytes a second of a copy from pinned memory."""
    host = torch.empty(COPIED, dtype=torch.uint8, pin_memory=DEVICE.type == "cuda")
    there = torch.empty(COPIED, dtype=torch.uint8, device=DEVICE)
    seconds = []
    for _ in range(COPIES + 1):
        synchronize()
        began = time.perf_counter()
        there.copy_(host, non_blocking=True)
        synchronize()
        seconds.append(time.perf_counter() - began)
    return COPIED / median(seconds[1:])


def room_for(X: NDArray, k: int, left: float) -> Room:
    """Return the least memory that leaves so many bytes beside clusters, blocks and their state."""
    n, d = X.shape
    wanted = left + CLUSTERS * k * (d + 1)
    low, high = 0, 1 << 50
    while high - low > 1000:
        middle = (low + high) // 2
        try:
            enough = Room.of(n, d, X.itemsize, False, middle).left >= wanted
        except MemoryError:
            enough = False
        low, high = (low, middle) if enough else (middle, high)
    return Room.of(n, d, X.itemsize, False, high)


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Have torch take no more memory on the device."""
    if DEVICE.type != "cuda":
        yield
        return
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(DEVICE)
    whole = torch.cuda.get_device_properties(DEVICE).total_memory
    torch.cuda.set_per_process_memory_fraction(min(size / whole, 1.0), DEVICE)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, DEVICE)


def sent_by(engine: Engine) -> int:
    """Return the bytes that were sent so far."""
    return engine.group.sender.n_bytes if isinstance(engine, Parts) else 0


def figures(engine: Engine, start: NDArray, rounds: int) -> Row:
    """Return what an iteration takes and sends, a run's seconds, the seedings', and hashes."""
    found = timed(engine, start, FEW, MANY, rounds, lambda: sent_by(engine))
    seeds = min(SEEDS, len(start))
    seedings = seeded(engine, seeds, rounds)
    return found | {"sent": found.pop("counted"), "seeds": seeds} | seedings


def measure(case: Sequence[int], rounds: int) -> Iterator[Row]:
    """Give a row for each part of the rows that stays on the GPU."""
    n, d, k = case
    device = torch.cuda.get_device_name(DEVICE) if DEVICE.type == "cuda" else cpu_name()
    speed = bus()
    for narrow in (False, True):
        X = make(n, d, k, narrow)
        start = X[:: n // k][:k].copy()
        shape: Row = {"n": n, "d": d, "k": k, "narrow": narrow, "device": device, "bus": speed}
        inside = figures(choose("cuda", X, None, None), start, rounds)
        yield shape | {"kept": "in memory", "cap": None} | inside
        parts = {"none": 0.0, "half of the rows": X.nbytes / 4}
        if not narrow:
            parts = {"none": 0.0, "half precision": 1.02 * n * (2 * d + 8)}
        for kept, left in parts.items():
            room = room_for(X, k, left)
            with limited(room.free):
                began = time.perf_counter()
                engine = Parts(OutOfCore(Array(X, room.rows), None, "cuda:0", room))
                read = time.perf_counter() - began
                found = figures(engine, start, rounds)
                plan = str(engine.group.plan)
                del engine
                used = torch.cuda.max_memory_allocated(DEVICE) if DEVICE.type == "cuda" else 0
            if any(found[key] != inside[key] for key in ("answer", "picks")):
                raise SystemExit(
                    f"Out of core, where {kept} stays, the bits are not those in memory."
                )
            yield (
                shape
                | {"kept": kept, "cap": room.free, "peak": used, "read_s": read, "plan": plan}
                | found
                | {"ratio": found["ms"] / inside["ms"], "floor": 1e3 * found["sent"] / speed}
            )


def cells(row: Row) -> list[str]:
    """Return what a row's figures are shown as."""
    cap = row["cap"]
    return [
        f"{row['n']:,}, {row['d']}, {row['k']}{', narrow' if row['narrow'] else ''}",
        row["kept"],
        f"{cap / 1e9:.2f}" if cap else "",
        f"{row['ms']:.2f}",
        f"{row['ratio']:.2f}" if cap else "1",
        f"{row['sent'] / 1e9:.3f}" if cap else "",
        f"{row['floor']:.2f}" if cap else "",
        *seeding_cells(row),
    ]


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", default=",".join(map(str, CASE)), metavar="N,D,K")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--save", action="store_true", help="keep the figures")
    options = parser.parse_args()
    rows: list[Row] = []
    for row in measure([int(part) for part in options.case.split(",")], options.rounds):
        rows.append(row)
        print(row, flush=True)
    show(HEADS, list(map(cells, rows)))
    if options.save:
        print(keep("out_of_core", rows))


if __name__ == "__main__":
    main()
