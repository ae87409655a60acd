"""Fits of a Parquet file by blocks, compared with fits in memory and with MiniBatchKMeans.

    python benchmarks/streaming.py --save             5,000,000 x 16, k = 64; about five minutes
    python benchmarks/streaming.py --rows 500000 --rounds 1 --threads 1

The file holds blobs in float32, in row groups of a million rows, with pyarrow's compression,
and lies in the page cache.  All of Lloydia's fits start from the same rows, do the same iterations
and must come to the same bits; their time runs from the file to the labels:

* in memory: pyarrow reads the file, and the array is clustered;
* chunks, all kept: there is room for all rows, so they are read once;
* chunks, half kept, and none kept: `memory` leaves room for so many blocks, and the others are read
  and decoded again in every pass;
* chunks, none kept, spilled: they are decoded once, and written to a file beside;
* chunks of .npy, none kept: the same rows as NumPy writes them, which need no decoding;
* MiniBatchKMeans: scikit-learn's, one partial_fit for every batch of 4,096 rows, from the same
  start, in one pass over the file or in as many as there are iterations, and one that predicts;
  `inertia` is relative to Lloydia's.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from pyarrow import parquet
from rich.console import Console
from rich.table import Table
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from lloydia import KMeans, chunks
from lloydia.bench.machine import cpu_name, keep, load
from lloydia.data.chunks import Chunks

N_FEATURES, N_CLUSTERS, ITERATIONS = 16, 64, 10
GROUP, BATCH = 1_000_000, 4096


def write_file(path: Path, n: int) -> NDArray[np.float32]:
    """Write `n` rows of blobs, as .npy too; return the first of them, which are the start."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(N_CLUSTERS, N_FEATURES))
    names = [f"x{j}" for j in range(N_FEATURES)]
    writer, start = None, np.empty(0)
    plain = open_memmap(path.with_suffix(".npy"), "w+", np.float32, (n, N_FEATURES))
    for at in range(0, n, GROUP):
        m = min(GROUP, n - at)
        rows = centers[rng.integers(N_CLUSTERS, size=m)] + rng.normal(size=(m, N_FEATURES)) / 2
        rows = rows.astype(np.float32)
        table = pa.Table.from_arrays([pa.array(column) for column in rows.T], names)
        if writer is None:
            writer, start = parquet.ParquetWriter(path, table.schema), rows[:N_CLUSTERS].copy()
        writer.write_table(table)
        plain[at : at + m] = rows
    plain.flush()
    assert writer is not None
    writer.close()
    return start


def in_memory(path: Path, model: KMeans, kept: float) -> KMeans:
    """Read the whole file, and fit."""
    table = parquet.read_table(path)
    return model.fit(np.column_stack([column.to_numpy() for column in table.columns]))


def by_blocks(path: Path, model: KMeans, kept: float) -> KMeans:
    """Fit with room for a part of the rows."""
    return model.fit(limited(path, model, kept))


def spilled(path: Path, model: KMeans, kept: float) -> KMeans:
    """Fit with room for a part of the rows in memory, and for all on disk."""
    source = limited(path, model, kept)
    source.spill = path.parent
    return model.fit(source)


def from_npy(path: Path, model: KMeans, kept: float) -> KMeans:
    """Fit the .npy file with room for a part of the rows."""
    return by_blocks(path.with_suffix(".npy"), model, kept)


def limited(path: Path, model: KMeans, kept: float) -> Chunks:
    """Open the file with room for a part of its rows."""
    source = chunks(path, memory="1TB")
    plan = source.meant_for(model, reset=True).plan(False, model.n_threads)
    rows = source.shape[0] * source.shape[1] * source.dtype.itemsize
    if kept < 1:
        source.memory = plan.peak - plan.kept + int(kept * rows)
    return source


def mini_batches(path: Path, model: KMeans, passes: float) -> MiniBatchKMeans:
    """Do some passes of partial_fit, and one that predicts."""
    fitted = MiniBatchKMeans(N_CLUSTERS, init=model.init, n_init=1, batch_size=BATCH)
    with threadpool_limits(model.n_threads):
        for _ in range(int(passes)):
            for rows in batches(path, BATCH):
                fitted.partial_fit(rows)
        fitted.labels_ = np.concatenate([fitted.predict(rows) for rows in batches(path, GROUP)])
        fitted.inertia_ = -sum(fitted.score(rows) for rows in batches(path, GROUP))
    return fitted


def batches(path: Path, size: int) -> Any:
    """Give the rows of the file, `size` at a time."""
    for batch in parquet.ParquetFile(path).iter_batches(size):
        yield np.column_stack([column.to_numpy() for column in batch.columns])


CONTENDERS: dict[str, tuple[Callable[..., Any], float]] = {
    "in memory": (in_memory, 1.0),
    "chunks, all kept": (by_blocks, 1.0),
    "chunks, half kept": (by_blocks, 0.5),
    "chunks, none kept": (by_blocks, 0.0),
    "chunks, none kept, spilled": (spilled, 0.0),
    "chunks of .npy, none kept": (from_npy, 0.0),
    "MiniBatchKMeans, one pass": (mini_batches, 1),
    f"MiniBatchKMeans, {ITERATIONS} passes": (mini_batches, ITERATIONS),
}


def measure(n: int, threads: int, rounds: int, names: list[str]) -> list[dict[str, Any]]:
    """Time the contenders, which take turns; return a row for each."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        start = write_file(path, n)
        model = KMeans(
            N_CLUSTERS, init=start, tol=0, max_iter=ITERATIONS, n_threads=threads, n_init=1
        )
        small = path.with_name("small.parquet")
        warm = KMeans(**model.get_params()).set_params(init=write_file(small, 50_000))
        for name in names:
            CONTENDERS[name][0](small, warm, CONTENDERS[name][1])
        for _ in range(rounds):
            for name in names:
                run, kept = CONTENDERS[name]
                own = KMeans(**model.get_params())
                begin = time.perf_counter()
                found[name] = run(path, own, kept)
                seconds[name].append(time.perf_counter() - begin)
    whole = found["in memory"]
    rows = []
    for name in names:
        ours = isinstance(found[name], KMeans)
        if ours and found[name].cluster_centers_.tobytes() != whole.cluster_centers_.tobytes():
            raise RuntimeError(f"{name} differs from the fit in memory.")
        if ours:
            np.testing.assert_array_equal(found[name].labels_, whole.labels_)
        ratios = [own / base for own, base in zip(seconds[name], seconds["in memory"], strict=True)]
        rows.append(
            {
                "case": f"{n},{N_FEATURES},{N_CLUSTERS}",
                "peer": name,
                "threads": threads,
                "rounds": rounds,
                "iterations": ITERATIONS,
                "seconds": median(seconds[name]),
                "ratio": median(ratios),
                "inertia": float(found[name].inertia_ / whole.inertia_),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--save", action="store_true", help="keep the figures in results/")
    options = parser.parse_args()
    names = ["in memory", *(name for name in options.contenders if name != "in memory")]
    busy = load()
    rows = measure(options.rows, options.threads, options.rounds, names)
    title = f"{rows[0]['case']}, {options.threads} threads, {cpu_name()}"
    table = Table("", "s", "of in memory", "inertia", title=title)
    for row in rows:
        figures = (f"{row['seconds']:.2f}", f"{row['ratio']:.2f}", f"{row['inertia']:.6f}")
        table.add_row(row["peer"], *figures)
    Console().print(table)
    if options.save:
        print("kept in", keep("stream", [{**row, "load": busy} for row in rows]))


if __name__ == "__main__":
    main()
