"""`lloydia predict`: give new rows to the clusters of a model."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lloydia.cli.blocks import Memory, announce, by_blocks, read_by_blocks
from lloydia.cli.labelled import Labelled
from lloydia.cli.options import (
    Device,
    FileName,
    Force,
    Json,
    TableOrFolder,
    require_device,
)
from lloydia.cli.progress import progress
from lloydia.cli.reading import Reading
from lloydia.cli.report import flush, print_clusters, sizes

if TYPE_CHECKING:
    from lloydia.data.chunks import Chunks
    from lloydia.data.labelled import Original
    from lloydia.estimators.kmeans import KMeans


def predict(
    model: Annotated[
        FileName, Parameter(help="A model written by lloydia fit --model, or by lloydia.save.")
    ],
    data: TableOrFolder,
    /,
    *,
    reading: Reading = Reading(),  # noqa: B008 - frozen
    memory: Memory = None,
    labelled: Labelled = Labelled(),  # noqa: B008
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
) -> None:
    """Assign each row of a table to the nearest centre of a model.

    If the model and the table both have a header, columns are matched by name, with --columns too.
    Without --labels and --out the labels are printed, one a line, or with --json as a list.

    Example: lloydia predict iris.npz new.csv --labels labels.csv
    """
    from lloydia.data.files import check_squares
    from lloydia.data.models import load
    from lloydia.data.outputs import Renames

    labelled.check(data, reading, [Path(model), Path(data)], force)
    require_device(device)
    before = labelled.stamp(data, reading)
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
        columns = f"{table.X.shape[1]} column{'s' * (table.X.shape[1] != 1)}"
        raise ValueError(f"{data} has {columns}, and {model} needs {d}.")
    original = labelled.original(data, before, reading, table)
    if blocks:
        _predict_blocks(estimator, source, labelled, original, reading.id, force, json)
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
        **_files(labelled),
    }
    written = labelled.labels is not None or labelled.out is not None
    if not written:
        facts["labels"] = found.tolist()
        if reading.id is not None and original is not None:
            facts["ids"] = list(chain.from_iterable(original.ids(reading.id)))
    with Renames(force=force) as renames:
        with progress("writing", json=json):
            labelled.write(found, original, reading.id, renames)
        if json or written:
            print_clusters(facts, sizes(found, k), json)
        elif reading.id is not None and original is not None:
            original.put_ids(sys.stdout, found, reading.id, ",")
        else:
            sys.stdout.writelines(f"{label}\n" for label in found.tolist())
        flush()


def _files(labelled: Labelled) -> dict[str, str | None]:
    return {name: str(p) if (p := getattr(labelled, name)) else None for name in ("labels", "out")}


def _predict_blocks(
    estimator: KMeans,
    source: Chunks,
    labelled: Labelled,
    original: Original | None,
    id_column: str | None,
    force: bool,
    json: bool,
) -> None:
    """Predict block by block; labels are kept in a file until the table is read once more."""
    import numpy as np

    from lloydia.data.outputs import Renames, naming, target_of

    first = labelled.labels or labelled.out
    if first is None:
        raise ValueError(
            "DATA is read by blocks, so its labels must go to a file: add --labels FILE."
        )
    k, (n, d) = len(estimator.cluster_centers_), source.shape
    counts = np.zeros(k, dtype=np.int64)
    announce(source.block_by_block().plan(False, None))
    with ExitStack() as files, Renames(force=force) as renames:
        with progress("predicting", json=json):
            start = time.perf_counter()
            with naming(first):
                kept = files.enter_context(TemporaryFile(dir=target_of(first).parent))
            for found in source.portions(estimator.predict):
                counts += np.bincount(found, minlength=k)
                with naming(first):
                    kept.write(found.data)
            with naming(first):
                kept.flush()
            seconds = time.perf_counter() - start
        labels = np.memmap(kept, dtype=np.int32, mode="r", shape=(n,))
        with progress("writing", json=json):
            labelled.write(labels, original, id_column, renames)
        facts = {
            "n_samples": n,
            "n_features": d,
            "n_clusters": k,
            "dtype": str(source.dtype),
            "seconds": seconds,
            **_files(labelled),
        }
        print_clusters(facts, counts, json)
        flush()
