"""`lloydia score`: how good a clustering is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lloydia.cli.options import (
    POSITIVE,
    SEED,
    Data,
    FileName,
    Json,
    OneDevice,
    require_device,
)
from lloydia.cli.progress import progress
from lloydia.cli.reading import Reading
from lloydia.cli.report import print_json, print_pairs


def score(
    data: Data,
    labels: Annotated[
        FileName,
        Parameter(
            help="A file with the label of each row, after its id with --id: .npy, .parquet or "
            "text; or a table with a column 'cluster', as lloydia fit --out writes it."
        ),
    ],
    /,
    *,
    reading: Reading = Reading(),  # noqa: B008 - frozen
    sample: Annotated[
        int | None,
        POSITIVE,
        Parameter(
            help="Number of rows to draw for the silhouette, whose time grows with the square of "
            "that number; all rows by default."
        ),
    ] = None,
    seed: Annotated[int, SEED, Parameter(help="The same seed draws the same sample.")] = 0,
    device: Annotated[
        OneDevice, Parameter(help="Where to compute: auto (the processor), cpu, cuda or cuda:N.")
    ] = "auto",
    json: Json = False,
) -> None:
    """Compute silhouette, Calinski-Harabasz and Davies-Bouldin scores of a clustering.

    Example: lloydia score iris.csv labels.csv --columns 1-4
    """
    import numpy as np

    from lloydia.backends import put
    from lloydia.data.files import check_squares
    from lloydia.data.labelled import endings, stamp
    from lloydia.data.labels import read_labels
    from lloydia.metrics import calinski_harabasz_score, davies_bouldin_score, silhouette_score

    require_device(device)
    before = None
    if reading.id is not None:
        endings(str(data), "--id")
        before = stamp(Path(data))
    table = reading.table(data, json=json)
    n, d = table.X.shape
    ids = None
    if before is not None and reading.id is not None:
        ids = reading.original(data, before, table).ids(reading.id)
    found = read_labels(labels, n, ids, reading.id or "1")
    if sample is not None and sample > n:
        raise ValueError(f"--sample {sample} asks for more than the {n} rows of {data}.")
    n_clusters = len(np.unique(found))
    if not 2 <= n_clusters < n:
        raise ValueError(
            f"{labels} has {n_clusters} cluster{'s' * (n_clusters != 1)} of {n} rows, and scores "
            "are of 2 clusters or more, fewer than rows."
        )
    if sample is not None and sample < 3:
        raise ValueError(f"--sample {sample} is too few: take 3 rows or more.")
    check_squares(table, n**2)  # the scores add up distances of pairs
    start = time.perf_counter()
    with progress("scoring", json=json):
        X = put(device, table.X)
        scores = {
            "silhouette": silhouette_score(X, found, sample_size=sample, random_state=seed),
            "calinski_harabasz": calinski_harabasz_score(X, found),
            "davies_bouldin": davies_bouldin_score(X, found),
        }
    facts = {
        "n_samples": n,
        "n_features": d,
        "n_clusters": n_clusters,
        **{name: float(value) for name, value in scores.items()},
        "silhouette_sample": sample,
        "seconds": time.perf_counter() - start,
    }
    (print_json if json else print_pairs)(facts)
