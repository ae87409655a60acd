"""Options of `lloydia fit` that say how the clusters are found."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from lloydia.cli.options import METHOD, POSITIVE, SEED, Device, Threads, real, whole_or_auto
from lloydia.spelling import meant

if TYPE_CHECKING:
    from lloydia.data.files import Table
    from lloydia.estimators.kmeans import KMeans

SEEDINGS = ("k-means++", "random", "first", "farthest", "k-means||")

# Seconds that a seeding takes before a faster one is named.
PATIENCE = 2.0

# Rows a cluster from which on k-means|| took less than half the time of k-means++ on a processor,
# in all cases where k-means++ took PATIENCE or longer: 200,000 to 1,000,000 rows of 2 to 64
# features, drawn from 20 clusters and from k.  With 200 rows a cluster both took the same in one.
ROWS_A_CLUSTER = 400

# Clusters from which on k-means++, with two passes a centre over rows that are read again in every
# pass, needs more than the 12 passes of k-means||.
PASSES = 8

# As in scikit-learn.
TOL = 1e-4


@Parameter(name="*", group=METHOD)
@dataclass(frozen=True)
class Method:
    """How the clusters are found."""

    init: Annotated[
        Literal["k-means++", "random", "first", "farthest", "k-means||"] | str,
        Parameter(
            show_choices=False,
            help="How to choose the initial centres: k-means++, random, first (the first rows), "
            "farthest, k-means||; or a file of them, a table or a model, whose columns are "
            "matched by name if both files have a header.",
        ),
    ] = "k-means++"
    algorithm: Annotated[
        Literal["auto", "lloyd", "hamerly", "exponion", "yinyang", "elkan", "filtering"],
        Parameter(help="All algorithms give the same result; they differ in speed and memory."),
    ] = "auto"
    device: Device = "auto"
    tol: Annotated[
        float | None,
        Parameter(
            converter=real,
            validator=Number(gte=0),
            help="Stop when the squared distances that the centres moved add up to at most this "
            f"times the mean variance of the columns; {TOL:g} by default.",
        ),
    ] = None
    max_iter: Annotated[int, POSITIVE, Parameter(help="Largest number of iterations.")] = 300
    stop: Annotated[
        str | None,
        Parameter(
            help="Stop rules instead of --tol, joined by |: labels (no row changed its cluster), "
            "labels:0.001 (at most this fraction did), inertia:1e-6 (the inertia fell by less), "
            "centers:5e-6 (no coordinate of a centre moved by more)."
        ),
    ] = None
    n_init: Annotated[
        int | Literal["auto"],
        Parameter(
            converter=whole_or_auto,
            help="Number of runs, each from a new start; the one with the least inertia is kept. "
            "auto: 10 with --init random, else 1.",
        ),
    ] = "auto"
    seed: Annotated[int, SEED, Parameter(help="The same seed gives the same result.")] = 0
    threads: Threads = None
    dtype: Annotated[
        Literal["auto", "float32", "float64"],
        Parameter(help="Precision of data and centres; auto keeps that of the file."),
    ] = "auto"
    empty: Annotated[
        Literal["relocate", "keep", "error"],
        Parameter(
            help="What to do with an empty cluster: move its centre to a row that is far from "
            "its own, keep its centre, or stop with an error."
        ),
    ] = "relocate"

    def initial(self, table: Table, k: int) -> Any:
        """Return the name of a seeding, or the initial centres from a file, shape (k, d).

        Where both have a header, columns are matched by name.
        """
        if self.init in SEEDINGS:
            return self.init
        from lloydia.data.models import read_centers

        centers, found = read_centers(self.init, str(table.X.dtype), k)
        names = list(found or ())
        if names and table.names and names != list(table.names):
            missing = [name for name in table.names if names.count(name) != 1]
            if missing:
                raise ValueError(
                    f"{self.init} has no column {missing[0]!r}, or several: centres are matched to "
                    "DATA by name, so name its columns as DATA does, or give a file without names."
                )
            centers = centers[:, [names.index(name) for name in table.names]]
        if centers.shape != (k, table.X.shape[1]):
            rows, columns = centers.shape
            raise ValueError(
                f"{self.init} holds {rows} centres of {columns} columns; {k} of {table.X.shape[1]} "
                "are needed: change -k or --columns, or name another file."
            )
        return centers

    def check(self) -> None:
        """Refuse an unknown seeding or stop rule before any data is read."""
        from lloydia.data.formats.missing import no_such_file, similar_file
        from lloydia.parameters import SAME
        from lloydia.stopping import parse

        if self.stop is not None:
            parse(self.stop)
            if self.tol is not None:
                raise ValueError(
                    f"--stop {self.stop} takes the place of --tol {self.tol:g}: give one of them."
                )
        if self.init not in SEEDINGS and not (self.init and Path(self.init).exists()):
            path = Path(self.init)
            what, hint = f"Unknown --init {self.init!r}", meant(self.init, SEEDINGS, SAME)
            if path.suffix or len(path.parts) > 1:
                if similar_file(path) is not None:
                    raise no_such_file(path)
                what, hint = f"no such file: {path}", "."
            raise ValueError(f"{what}; give {', '.join(SEEDINGS)}, or a file of centres{hint}")

    @contextmanager
    def naming_faster_start(
        self, n: int, k: int, whole: bool, clock: Callable[[], float] = time.monotonic
    ) -> Iterator[None]:
        """Say once that k-means|| seeds faster, where a seeding within takes long and it does.

        Parameters
        ----------
        n, k : int
            Rows and clusters.
        whole : bool
            Whether the rows are in memory.
        clock : callable
            Returns seconds.
        """
        faster = n >= ROWS_A_CLUSTER * k if whole else k >= PASSES
        if self.init != "k-means++" or self.device not in ("auto", "cpu") or not faster:
            yield
            return
        from lloydia.progress.stages import Stage, watch_stages

        began = clock()
        said = False

        def on_stage(stage: Stage) -> None:
            nonlocal began, said
            if stage.name != "centers" or said:
                return
            if stage.done <= 2:
                # The first one may wait for a compiler.
                began = clock()
            elif clock() - began >= PATIENCE:
                said = True
                print(
                    f"lloydia: k-means++ takes long to choose {k:,} centres; --init 'k-means||' "
                    "is faster here, and chooses other ones.",
                    file=sys.stderr,
                )

        with watch_stages(on_stage):
            yield

    def estimator(self, table: Table, k: int) -> KMeans:
        """Return the estimator, not fitted."""
        from lloydia.estimators.kmeans import KMeans
        from lloydia.stopping import parse

        return KMeans(
            n_clusters=k,
            init=self.initial(table, k),
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=TOL if self.tol is None else self.tol,
            random_state=self.seed,
            algorithm=self.algorithm,
            device=self.device,
            n_threads=self.threads,
            stop=None if self.stop is None else parse(self.stop),
            empty=self.empty,
        )
