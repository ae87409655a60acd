"""`lloydia fit`: cluster a table."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lloydia.cli.blocks import Memory, Spill, announce, by_blocks, read_by_blocks
from lloydia.cli.checkpoint import Checkpoints
from lloydia.cli.labelled import Labelled
from lloydia.cli.method import METHOD, SEEDINGS, Method
from lloydia.cli.options import (
    FILE,
    OUTPUT,
    POSITIVE,
    Force,
    Json,
    TableOrFolder,
    require_device,
)
from lloydia.cli.progress import progress
from lloydia.cli.reading import Reading
from lloydia.cli.report import flush, print_clusters, sizes

if TYPE_CHECKING:
    from lloydia.data.files import Table
    from lloydia.data.outputs import Renames
    from lloydia.estimators.kmeans import KMeans

PICTURES = (".png", ".svg", ".pdf")


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Outputs:
    """Files to write; each appears whole or not at all."""

    centers: Annotated[
        Path | None, FILE, Parameter(help="File for the centres: .npy, .csv, .tsv, .txt, .parquet.")
    ] = None
    model: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="File for the model that lloydia predict, and lloydia.load in Python, read: .npz."
        ),
    ] = None
    plot: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="File for a picture of the clusters: .png, .svg, .pdf. It shows the first two "
            "principal components; one or two columns are drawn as they are."
        ),
    ] = None

    def check(self, used: list[Path], force: bool) -> None:
        """Refuse an output that could not be written before any work is done; add it to `used`."""
        from lloydia.data.outputs import TABLES, check_output

        known = {"centers": TABLES, "model": (".npz",), "plot": PICTURES}
        for field in fields(self):
            path = getattr(self, field.name)
            if path is not None:
                check_output(path, known[field.name], others=used, force=force)
                used.append(path)
        if self.plot is not None:
            import lloydia.plots  # noqa: F401 - says now, not after the fit, that it is missing

    def write(self, fitted: KMeans, table: Table, renames: Renames) -> None:
        """Write all files under temporary names; they are renamed when `renames` closes."""
        import numpy as np

        from lloydia.data.models import write_model
        from lloydia.data.outputs import write_table, writing

        features = table.names or tuple(f"x{j + 1}" for j in range(table.X.shape[1]))

        if self.centers:
            with writing(self.centers, renames) as to:
                write_table(to, fitted.cluster_centers_, features, _suffix(self.centers))
        if self.model:
            # They belong to the machine of this command, not to the model.
            fitted.set_params(device="auto", n_threads=None)
            if table.names:
                fitted.feature_names_in_ = np.array(table.names, dtype=object)
            with writing(self.model, renames) as to:
                write_model(fitted, to)
        if self.plot:
            from lloydia.plots import clusters, save

            title = f"{Path(table.where).name}: {len(fitted.cluster_centers_)} clusters"
            found = (fitted.labels_, fitted.cluster_centers_)
            with writing(self.plot, renames) as to:
                save(clusters(table.dense().X, *found, title=title, names=table.names), to)


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def fit(
    data: TableOrFolder,
    /,
    *,
    k: Annotated[
        int, Parameter(name=["-k", "--k"], group=METHOD, help="Number of clusters."), POSITIVE
    ],
    method: Method = Method(),  # noqa: B008 - frozen
    reading: Reading = Reading(),  # noqa: B008
    memory: Memory = None,
    spill: Spill = None,
    labelled: Labelled = Labelled(),  # noqa: B008
    outputs: Outputs = Outputs(),
    checkpoints: Checkpoints = Checkpoints(),  # noqa: B008
    force: Force = False,
    json: Json = False,
) -> None:
    """Cluster the rows of a table.

    Example: lloydia fit iris.csv -k 3 --columns 1-4 --labels labels.csv

    Example: lloydia fit customers.csv -k 4 --id name --columns age,income --out clustered.csv

    Example: lloydia fit big.parquet -k 100 --memory 2GB --init 'k-means||'
    """
    from lloydia.backends import on_plan
    from lloydia.data.files import check_squares
    from lloydia.data.outputs import Renames
    from lloydia.data.variances import warn_of_dominant, warning_of_blocks

    method.check()
    used = [Path(data)] + [Path(method.init)] * (method.init not in SEEDINGS)
    labelled.check(data, reading, used, force)
    outputs.check(used, force)
    checkpoints.check(used, force)
    require_device(method.device)
    before = labelled.stamp(data, reading)
    dtype = None if method.dtype == "auto" else method.dtype
    blocks = by_blocks(data, memory)
    if blocks and outputs.plot is not None:
        remedy = "it out" if by_blocks(data, None) else "it out, or --memory"
        raise ValueError(
            f"--plot draws rows that are in memory, and {data} is read by blocks: leave {remedy}."
        )
    if blocks:
        source, table = read_by_blocks(reading, data, memory, dtype=dtype, spill=spill)
    elif spill is not None:
        raise ValueError("--spill is for DATA that is read by blocks: add --memory.")
    else:
        table = reading.table(data, dtype=dtype, sparse=True, json=json)
    n = table.X.shape[0]
    if k > n:
        raise ValueError(
            f"-k {k} asks for more clusters than the {n} rows of {data}: give at most {n}."
        )
    original = labelled.original(data, before, reading, table)
    estimator = checkpoints.prepared(method.estimator(table, k))
    whole = True
    if blocks:
        plan = source.meant_for(estimator, reset=True).plan(False, method.threads)
        whole = plan.whole
        source.on_first_read = warning_of_blocks(table.columns, source.shape, table.where)
    else:
        check_squares(table, n)
    with (
        progress(f"{k:,} clusters", json=json),
        method.naming_faster_start(n, k, whole),
        on_plan(announce),
        checkpoints.spelled(),
    ):
        if not blocks:
            warn_of_dominant(table.X, table.columns, table.where)
        start = time.perf_counter()
        estimator.fit(table.X)
        seconds = time.perf_counter() - start
    files = {"labels": labelled.labels, **vars(outputs), "out": labelled.out}
    facts = {**_facts(estimator, table, seconds, files), "checkpoint": checkpoints.path()}
    with Renames(force=force) as renames:
        with progress("writing", json=json):
            labelled.write(estimator.labels_, original, reading.id, renames)
            outputs.write(estimator, table, renames)
        print_clusters(facts, sizes(estimator.labels_, k), json)
        flush()


def _facts(
    fitted: KMeans, table: Table, seconds: float, files: dict[str, Path | None]
) -> dict[str, Any]:
    return {
        "n_samples": table.X.shape[0],
        "n_features": table.X.shape[1],
        "n_clusters": len(fitted.cluster_centers_),
        "dtype": str(fitted.cluster_centers_.dtype),
        "algorithm": fitted.algorithm_,
        "device": fitted.device_,
        "n_iter": int(fitted.n_iter_),
        "inertia": float(fitted.inertia_),
        "seconds": seconds,
        "seconds_seeding": float(fitted.seconds_seeding_),
        "converged": bool(fitted.converged_),
        "n_distances": int(fitted.n_distances_),
        **{name: str(path) if path else None for name, path in files.items()},
    }
