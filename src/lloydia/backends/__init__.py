"""The engines: what the loop asks of a place where data can live, and how one is chosen.

An :class:`Engine` holds one data set where it is (in this process, on a device, in pieces on other
machines) and the state of one run on it.  The loop, the seedings and the empty-cluster policies
never see rows or labels: they ask for integers, for scalars and for a few rows by number.

Two properties make every engine give the same bits; the first makes them compose, see
:mod:`lloydia.backends.parts`:

* What a part of the data contributes is integer (limbs of :mod:`lloydia.exact.sums`) or a minimum
  or maximum, so contributions merge in any order.  The grid needs the extent of all parts first:
  :meth:`Engine.extent` measures, :meth:`Engine.set_grid` tells every part the merged one.
* Scalars may arrive late.  :meth:`Engine.iterate` queues an iteration and returns something with
  ``result()``; the loop keeps up to :attr:`Engine.lag` of them in flight before it waits for the
  oldest.  An engine with a lag keeps the centres of that many iterations, and
  :meth:`Engine.rewind` makes one of them current; an iteration that follows one with empty
  clusters must change nothing until the loop has dealt with it (it rewinds to it), unless the run
  was started with ``settles=False``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, SupportsFloat

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.data.chunks.source import Chunks
from lloydia.data.collections import Partitions
from lloydia.data.device_arrays import on_gpu
from lloydia.exact.sums import Extent
from lloydia.imports import load

__all__ = ["UNLIMITED", "Engine", "Lane", "Late", "Ready", "Report", "choose", "lanes", "together"]

# Iterations that no run needs.
UNLIMITED = 1 << 30

# The context in which the work of one queue is done.
Lane = Callable[[], AbstractContextManager]


@dataclass(frozen=True)
class Report:
    """What one iteration tells the loop.

    Attributes
    ----------
    iteration : int
        From 1.
    n_samples : int
    n_changed : int
        Rows whose label differs from the iteration before (all of them in the first).
    n_empty : int
        Clusters of weight 0.
    shift : float
        Sum over centres of the squared distance moved.
    move : float
        Largest change of a single coordinate of any centre.
    inertia : float or None
        Weighted sum of squared distances to the centres *before* the update; None unless asked.
    drop : float or None
        Inertia of the iteration before minus this one's.  Set by the loop.
    max_iter : int
        Iterations at which the run ends in any case.  Set by the loop, for watchers.
    """

    iteration: int
    n_samples: int
    n_changed: int
    n_empty: int
    shift: float
    move: float
    inertia: float | None = None
    drop: float | None = None
    max_iter: int = 0


class Late(Protocol):
    """A report that is perhaps still being computed."""

    def begin(self) -> None:
        """Have it computed now, if the engine has put that off until someone waits for it."""

    def result(self) -> Report:
        """Wait for it."""


@dataclass(frozen=True)
class Ready:
    """A report that is there."""

    report: Report

    def begin(self) -> None:
        """Do nothing."""

    def result(self) -> Report:
        """Return it."""
        return self.report


class Engine(Protocol):
    """One data set in its place, and the state of a run on it.

    Attributes
    ----------
    name : str
        ``"cpu"``, ``"cuda:0"``, ...
    n_samples, n_features : int
    dtype : numpy.dtype
        float32 or float64: the type of the centres.
    lag : int
        Iterations that may be queued before the loop waits for the first report.
    algorithm : str
        That of the last assignment; of a run with ``"auto"``, the one it came to.
    full : bool
        Whether every cluster is known to have a row after :meth:`assign`.
    n_distances, n_rechecked : int
        Point-centre distances (or scores) evaluated by assignments since the engine was made, and
        rows whose certificate failed.
    """

    name: str
    n_samples: int
    n_features: int
    dtype: np.dtype
    lag: int
    algorithm: str
    full: bool
    n_distances: int
    n_rechecked: int

    def extent(self) -> Extent:
        """Measure the data; parts merge."""

    def set_grid(self, extent: Extent) -> None:
        """Fix the grid of all sums from the extent of the whole data set."""

    def spread(self) -> float:
        """Return the mean over features of the variance: D to the mean, summed, over n d.

        It may be asked for in a run, which it does not disturb.
        """

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        """Return copies of some rows, dense, on the host: shape (m, d).

        -0.0 becomes 0.0, which it is in a sparse matrix.
        """

    # -- seeding: the state is each row's D to the nearest centre so far ---------------------

    def seed_start(self) -> object:
        """Forget all centres: every row weighs its weight alone."""

    def seed_draw(self, fractions: NDArray[np.float64]) -> NDArray[np.int64]:
        """Pick rows with probability proportional to weight times D (to weight, at the start).

        A fraction u of [0, 1) picks the first row whose cumulative integer sum exceeds
        ``floor(u * total)``.  Returns -1 where the total is 0.
        """

    def seed_weights(self) -> NDArray[np.float64]:
        """Return every row's weight (1 without weights), on the host: shape (n,)."""

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        """Return the first rows of positive weight, at most `count`."""

    def seed_farthest(self) -> int:
        """Return the row of positive weight with the largest D, the first of equals.

        Returns -1 where every such D is 0.
        """

    def seed_potentials(self, candidates: NDArray[np.int64]) -> list[int]:
        """Return what the total of weight times D would be with each candidate as a centre.

        There is at least one centre already.
        """

    def seed_add(self, row: int) -> None:
        """Make a row a centre; cheapest for one of the candidates of :meth:`seed_potentials`."""

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        """Choose rows, each on its own, with probability ``factor * weight * D / total``.

        Ascending; see :func:`lloydia.exact.counter.chosen`.
        """

    def seed_extend(self, rows: NDArray[np.int64]) -> None:
        """Make several rows centres, and remember which centre is nearest to each row.

        Ties go to the centre that was first; all centres come this way, or none.
        """

    def seed_loads(self) -> NDArray[np.int64]:
        """Return the integer sum of the weights of the rows nearest to each centre."""

    def subset(self, rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Engine:
        """Return an engine of some of the rows, in ascending order, with other weights."""

    # -- a run -------------------------------------------------------------------------------

    def start(
        self, centers: NDArray, algorithm: str, settles: bool = True, max_iter: int = UNLIMITED
    ) -> None:
        """Begin a run from these centres, with labels and bounds forgotten.

        `settles` is whether the loop will deal with empty clusters: if not, iterations after one
        with empty clusters go on.  The run ends after `max_iter` iterations at the latest: what
        takes longer to pay is not begun, and what follows the last may be queued with it.  What
        :meth:`labels` and :meth:`centers` returned stays as it is.
        """

    def iterate(self, inertia: bool) -> Late:
        """Queue an assignment and an update of the centres; empty clusters keep theirs."""

    def rewind(self, iteration: int) -> None:
        """Make the state after the given iteration current."""

    def empty_clusters(self) -> NDArray[np.int64]:
        """Return the clusters that had weight 0 in the current iteration, ascending."""

    def farthest(self, count: int) -> tuple[NDArray, NDArray, NDArray]:
        """Return (rows, D, labels) of rows of positive weight, largest D first, ties by row.

        D is to the centres before the update.  At most `count` rows, fewer if there are no more.
        """

    def counts(self) -> NDArray[np.int64]:
        """Return the number of rows of positive weight in each cluster."""

    def relocate(self, rows: NDArray[np.int64], clusters: NDArray[np.int64]) -> Report:
        """Compute the current iteration's centres again, with each row moved to that cluster.

        Only the means know of the move: labels stay as they were assigned.
        """

    def assign(self) -> None:
        """Assign every row to the current centres: the end of a run, no update follows."""

    def inertia(self) -> SupportsFloat:
        """Return the weighted sum of D to the centres of the last assignment.

        What is not a float yet waits when it becomes one.
        """

    def labels(self) -> NDArray[np.int32]:
        """Return the labels of the last assignment, an ndarray or a tensor: shape (n,)."""

    def centers(self) -> NDArray:
        """Return the current centres: shape (k, d)."""

    # -- without a run -----------------------------------------------------------------------

    def classify(self, centers: NDArray) -> None:
        """Assign every row to the given centres."""

    def distances(self, centers: NDArray) -> NDArray:
        """Return the distance (not squared) of every row to every centre, in X's type."""


def choose(device: str, X: Any, weights: Any, n_threads: int | None) -> Engine:
    """Put `X` in place on a device and return its engine.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "cuda:0", ..., "cuda:all", "cuda:0,1", ..., "reference"}
        ``"auto"`` is where the array lives; a NumPy array or SciPy matrix stays on the CPU.
        ``"cuda"`` is the GPU that the array lives on, or torch's current one; ``"cuda:all"`` and
        ``"cuda:0,1"`` cut the rows evenly over GPUs of this host.  ``"reference"`` is the NumPy
        oracle: slow, for tests and study.
    X : ndarray of shape (n, d), CSR matrix, tensor on a GPU, Chunks, or Partitions of Dask's
        Floating, finite, in any layout; of :func:`lloydia.chunks` the blocks may turn out not to be
        finite as they are read.
    weights : ndarray of shape (n,), float64, or None; Weights beside Partitions
    n_threads : int or None
        None: as many as this process may use.

    Raises
    ------
    ValueError
        For a device that is not there, or not the one that `X` lives on; there is no silent
        fallback.
    ImportError
        For a GPU, without PyTorch and Triton.
    MemoryError
        For chunks that need more than they may take.
    """
    if isinstance(X, Chunks):
        return _of_chunks(device, X, weights, n_threads)
    if isinstance(X, Partitions):
        return load("lloydia.backends.cluster").engine(X, weights, device, n_threads)
    there = on_gpu(X)
    if name := _gpu_name(device, there):
        return _on_gpu(name, X, weights)
    if re.fullmatch(r"cuda:(all|\d+(,\d+)+)", str(device)):
        return _on_gpus(device, X, weights)
    if device not in ("auto", "cpu", "reference"):
        raise ValueError(
            f"Unknown device {device!r}: use 'auto', 'cpu', 'cuda', 'cuda:N', 'cuda:N,M' or "
            "'cuda:all'."
        )
    if there:
        raise ValueError(
            f"X lives on {X.device} and device={device!r} does not: use device='auto', or copy X "
            "to the host (X.cpu() for torch, X.get() for CuPy)."
        )
    if device == "reference":
        from lloydia.backends.reference import Reference

        return Reference(X, weights)
    return load("lloydia.backends.cpu").CPU(X, weights, n_threads)


def _of_chunks(device: str, X: Chunks, weights: NDArray | None, n_threads: int | None) -> Engine:
    """Read all rows where they fit into the memory that they may take, else some of them again."""
    plan = X.plan(weights is not None, n_threads)
    if plan.whole:
        return choose(device, X.load(plan), weights, n_threads)
    if device not in ("auto", "cpu"):
        raise ValueError(
            f"device={device!r} takes rows that fit into memory, and here {plan}: use device='cpu'."
        )
    blocks = load("lloydia.data.chunks.reader").Reader(X, plan.rows, plan.n_kept)
    stream = load("lloydia.backends.stream").Stream(blocks, weights, n_threads)
    return load("lloydia.backends.parts").Parts(stream)


def lanes(device: str, X: Any) -> AbstractContextManager[Sequence[Lane]]:
    """Return the queues in which the members of a batch are computed side by side.

    One, and no more than that, where a member keeps all of the place busy: on the CPU.  The
    context waits, as X's library does, for all that was queued in them.
    """
    if name := _gpu_name(device, on_gpu(X)):
        with _extra(name):
            number = load("lloydia.backends.cuda.devices").find(name, X)
            return load("lloydia.backends.cuda.lanes").lanes(number)
    return nullcontext([nullcontext])


@contextmanager
def together(
    device: str, X: Any, n_clusters: int, settles: bool
) -> Iterator[Iterable[dict[int, Engine]]]:
    """Open the groups of a batch's members whose iterations are computed together: on a GPU.

    Each group is an engine for each of its members, by number.  Start all of them before the first
    report is waited for; ask for an inertia when all have come to their end.  They settle no empty
    clusters: a member that has some, and `settles`, goes no further and is to be fitted by itself,
    as are those that are in no group.

    Parameters
    ----------
    device, X
        As in :func:`choose`; without weights.
    n_clusters : int
    settles : bool
        As in :meth:`Engine.start`.
    """
    name = _gpu_name(device, on_gpu(X))
    if not name:
        yield ()
        return
    with _extra(name):
        name = load("lloydia.backends.cuda.devices").find(name, X)
        member = load("lloydia.backends.cuda.member")
    with load("lloydia.backends.cuda.own_device").on(name):
        yield member.groups(name, X, n_clusters, settles)


def _gpu_name(device: str, there: bool) -> str:
    """Return ``"cuda"`` or ``"cuda:N"`` where a GPU is meant, else an empty string."""
    name = "cuda" if device == "auto" and there else str(device)  # a torch.device has a name too
    return name if re.fullmatch(r"cuda(:\d+)?", name) else ""


def _on_gpu(device: str, X: Any, weights: NDArray | None) -> Engine:
    _refuse_sparse(device, X)
    with _extra(device):
        name = load("lloydia.backends.cuda.devices").find(device, X)
        return load("lloydia.backends.cuda.engine").CUDA(X, weights, name)


def _on_gpus(device: str, X: Any, weights: NDArray | None) -> Engine:
    _refuse_sparse(device, X)
    with _extra(device):
        names = load("lloydia.backends.cuda.devices").find_several(device, X)
        if len(names) == 1:
            return _on_gpu(names[0], X, weights)
        return load("lloydia.backends.cuda.gpus").spread_rows(X, weights, names)


def _refuse_sparse(device: str, X: Any) -> None:
    if sp.issparse(X):
        raise ValueError(
            f"device={device!r} takes dense data and X is sparse: use device='cpu', or X.toarray()."
        )


@contextmanager
def _extra(device: str) -> Iterator[None]:
    """Say how to get what the GPU engine needs, where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "triton"):
            raise
        raise ImportError(
            f"device={device!r} needs PyTorch and Triton: pip install 'lloydia[gpu]', "
            "or use device='cpu'."
        ) from None
