"""`lloydia predict`: give new rows to the clusters of a model."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lloydia.cli.blocks import Memory, announce, by_blocks, read_by_blocks
from lloydia.cli.options import FILE, OUTPUT, Device, FileName, Json, Reading, TableOrFolder
from lloydia.cli.progress import progress
from lloydia.cli.report import flush, print_clusters, sizes

if TYPE_CHECKING:
    import numpy as np

    from lloydia.data.chunks import Chunks
    from lloydia.kmeans import KMeans


def predict(
    model: Annotated[
        FileName, Parameter(help="A model that lloydia fit --model, or lloydia.save, wrote.")
    ],
    data: TableOrFolder,
    /,
    *,
    reading: Reading = Reading(),  # noqa: B008 - frozen
    memory: Memory = None,
    labels: Annotated[
        Path | None,
        FILE,
        Parameter(
            group=OUTPUT,
            help="Cluster of each row; without it they are printed, with --json as a list under "
            '"labels".',
        ),
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Give each row of a table to the nearest centre of a model.

    Where the model and the table both have a header, columns are matched by name, also those of
    --columns.

    Example: lloydia predict iris.npz new.csv --labels labels.csv
    """
    from lloydia.data.files import check_squares
    from lloydia.data.models import load
    from lloydia.data.outputs import TABLES, check_output, write_table, writing

    if labels is not None:
        check_output(labels, TABLES, others=[Path(model), Path(data)])
    estimator = load(model).set_params(device=device, n_threads=None)
    # Columns are matched by name here; the rows themselves have no names.
    names = tuple(vars(estimator).pop("feature_names_in_", ())) or None
    k, d = estimator.cluster_centers_.shape
    dtype = str(estimator.cluster_centers_.dtype)
    blocks = by_blocks(data, memory)
    if blocks:
        source, table = read_by_blocks(reading, data, memory, dtype=dtype, names=names)
    else:
        table = reading.table(data, dtype=dtype, names=names, sparse=True, json=json)
    if table.X.shape[1] != d:
        raise ValueError(f"{data} has {table.X.shape[1]} columns, and {model} needs {d}.")
    if blocks:
        _predict_blocks(estimator, source, labels, json)
        return
    check_squares(table, table.X.shape[0])
    with progress("predicting", json=json):
        start = time.perf_counter()
        found = estimator.predict(table.X)
        seconds = time.perf_counter() - start
    facts = {
        "n_samples": table.X.shape[0],
        "n_features": d,
        "n_clusters": k,
        "dtype": str(table.X.dtype),
        "seconds": seconds,
        "labels": str(labels) if labels else found.tolist(),
    }
    with ExitStack() as renames:
        if labels is not None:
            with writing(labels, renames) as to:
                write_table(to, found, ["label"], labels.suffix.lower())
        if json or labels is not None:
            print_clusters(facts, sizes(found, k), json)
        else:
            sys.stdout.writelines(f"{label}\n" for label in found.tolist())
        flush()


def _predict_blocks(estimator: KMeans, source: Chunks, labels: Path | None, json: bool) -> None:
    """Predict block by block; labels are written as they come."""
    import numpy as np

    if labels is None:
        raise ValueError("labels of rows that are read by blocks go to a file: give --labels.")
    k, (n, d) = len(estimator.cluster_centers_), source.shape
    counts = np.zeros(k, dtype=np.int64)

    def counted(rows: np.ndarray) -> np.ndarray:
        found = estimator.predict(rows)
        counts[:] += np.bincount(found, minlength=k)
        return found

    announce(source.block_by_block().plan(False, None))
    with progress("predicting", json=json):
        start = time.perf_counter()
        source.write(counted, labels)
        seconds = time.perf_counter() - start
    facts = {
        "n_samples": n,
        "n_features": d,
        "n_clusters": k,
        "dtype": str(source.dtype),
        "seconds": seconds,
        "labels": str(labels),
    }
    print_clusters(facts, counts, json)
