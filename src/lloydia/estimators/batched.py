"""Batches: many data sets of one shape, each with the result of its own fit.

The data sets are the members of the batch.  On a GPU, one launch computes an iteration of many
members where possible (:func:`lloydia.backends.batch_groups`).  The other members run in a few CUDA
streams that overlap; the members of one stream run one after another and share the memory of one
engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from lloydia.backends import batch_groups, streams
from lloydia.backends.engine import Engine
from lloydia.backends.magnitudes import check_range
from lloydia.backends.weighted import WeightedRows
from lloydia.caller import warn_caller
from lloydia.data.arrays import (
    home_of,
    on_host,
)
from lloydia.data.device_arrays import aligned_to_16, load_torch, n_distinct
from lloydia.estimators.batch_arguments import check_batch, places_of, split, starts_of, states_of
from lloydia.estimators.kmeans import KMeans
from lloydia.estimators.starts import drawn_for, seed
from lloydia.loop.run import Result, Run, steps
from lloydia.loop.several_runs import Turns, about, in_step, interleave, outcome
from lloydia.parameters import check_init, check_parameters
from lloydia.seeding.given import checked

__all__ = ["k_means_batched"]


def k_means_batched(
    X: Any,
    n_clusters: int,
    *,
    init: Any = "k-means++",
    max_iter: int = 300,
    tol: float = 1e-4,
    random_state: Any = None,
    sample_weight: Any = None,
    stop: Any = None,
    empty: str = "relocate",
    device: str = "auto",
    n_threads: int | None = None,
) -> tuple[Any, ...]:
    """Cluster each data set of a batch on its own; on a GPU, many data sets at the same time.

    The data sets are called the members of the batch.  The result of member b is, to the last bit,
    that of ``KMeans(..., n_init=1)`` on ``X[b]``: it has its own start and its own number of
    iterations.

    Parameters
    ----------
    X : array-like of shape (n_members, n_samples, n_features)
        Dense rows in any array library that :class:`lloydia.KMeans` accepts, on the CPU or a GPU.
    n_clusters : int
        Number of clusters of each member.
    init : str, array of shape (n_members, n_clusters, n_features) or callable, \
            default="k-means++"
        As in :class:`lloydia.KMeans`; an array holds the initial centres of each member.
    max_iter, tol, stop, empty, device, n_threads
        As in :class:`lloydia.KMeans`.
    random_state : int, sequence, RandomState instance or None, default=None
        An int s seeds member b with s + b.  A sequence holds a seed or a RandomState for each
        member.  With a RandomState, or with None (NumPy's global generator), the members draw from
        it one after another.
    sample_weight : array-like of shape (n_members, n_samples), default=None
        Finite weights >= 0; None gives every row the weight 1.

    Returns
    -------
    centers : array of shape (n_members, n_clusters, n_features), float32 or float64
        Cluster centres.
    labels : array of shape (n_members, n_samples), int32
        The index of the nearest centre of each row.
    inertia : array of shape (n_members,), float64
        Sum over the rows of weight times squared distance to the nearest centre.
    n_iter : array of shape (n_members,), int64
        Number of iterations.

        All four are ndarrays if X was on the CPU, and arrays of X's library on its GPU otherwise.

    Raises
    ------
    ValueError, ImportError, MemoryError, EmptyClusterError
        As :meth:`lloydia.KMeans.fit`, if the parameters or any member are invalid.
    TypeError
        If X is sparse.

    Warns
    -----
    ConvergenceWarning
        If the fit of a member found fewer distinct clusters than `n_clusters`.

    References
    ----------
    S. P. Lloyd, "Least squares quantization in PCM", *IEEE Transactions on Information Theory*
    28(2), 1982; see :class:`lloydia.KMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> from lloydia import k_means_batched
    >>> X = np.array([[[1.0], [2.0], [9.0]], [[4.0], [8.0], [9.0]]])
    >>> centers, labels, inertia, n_iter = k_means_batched(X, 2, random_state=0)
    >>> inertia
    array([0.5, 0.5])
    """
    check_init(init)
    given = not (isinstance(init, str) or callable(init))
    model = KMeans(
        n_clusters, init="first" if given else init, n_init=1, max_iter=max_iter, tol=tol,
        device=device, n_threads=n_threads, stop=stop, empty=empty,
    )  # fmt: skip
    check_parameters(model)
    home = home_of(X)
    X = check_batch(X)
    size, n, _ = X.shape
    if n < n_clusters:
        raise ValueError(f"n_samples={n} should be >= n_clusters={n_clusters}.")
    batch = Batch(
        model, X, home,
        starts_of(init, X, n_clusters) if given else None,
        split("sample_weight", sample_weight, (size, n)),
        states_of(random_state, size),
        *places_of(X, n_clusters), np.empty(size), np.empty(size, dtype=np.int64),
    )  # fmt: skip
    left = batch.alone()
    if left:
        turns = iter(left)
        with streams(device, X) as queues:
            interleave([(lane, batch.turns(turns)) for lane in queues])
    batch.warn_of_fewer()
    return tuple(map(home, (batch.centers, batch.labels, batch.inertia, batch.n_iter)))


@dataclass(frozen=True)
class Batch:
    """The parameters, rows and results of the members of a batch.

    Attributes
    ----------
    drawn : dict of ndarray
        Initial centres of members whose fit has begun.  If a member is fitted a second time, it
        starts from these centres and draws no random numbers.
    doubtful : list of int
        Members that may have a cluster without rows.
    """

    model: KMeans
    X: Any
    home: Callable[[Any], Any]
    starts: Any
    weights: NDArray | None
    states: Sequence[RandomState]
    centers: Any
    labels: Any
    inertia: NDArray[np.float64]
    n_iter: NDArray[np.int64]
    drawn: dict[int, NDArray] = field(default_factory=dict)
    doubtful: list[int] = field(default_factory=list)

    @property
    def in_turn(self) -> bool:
        """Whether several members draw from one generator and so must start in their order."""
        return self.starts is None and len(set(map(id, self.states))) < len(self.states)

    def alone(self) -> list[int]:
        """Fit all members that one launch can compute together; return the others' numbers."""
        left = set(range(len(self.X)))
        model = self.model
        inertia = model.stop is not None and model.stop.needs_inertia
        if self.weights is None and not inertia:
            empty_stops = model.empty != "keep"
            starts = None if isinstance(self.starts, np.ndarray) else self.starts
            draw = partial(drawn_for, model.init, model.n_clusters)
            with batch_groups(
                model.device, self.X, model.n_clusters, empty_stops, starts, draw
            ) as groups:
                for group in groups:
                    begun = len(self.X) - len(left - self.drawn.keys())
                    if self.in_turn and sorted(group) != list(range(begun, begun + len(group))):
                        break
                    runs = {
                        b: self._fit(b, None, engine, self._start(b, there=True))
                        for b, engine in group.items()
                    }
                    ended = in_step(runs, empty_stops)
                    # Queue all copies before waiting for any result.
                    put(self.centers, {b: group[b].centers() for b in ended})
                    put(self.labels, {b: group[b].labels() for b in ended})
                    for b, run in ended.items():
                        self._count(b, outcome(run))
                    left -= ended.keys()
        return sorted(left)

    def turns(self, left: Iterable[int]) -> Turns:
        """Fit the members of `left`, one after the other."""
        for b in left:
            with about(b):
                weights = None if self.weights is None else self.weights[b]
                rows = WeightedRows.of(aligned_to_16(self.X[b]), weights)
                rows.refuse_few(self.model.n_clusters)
                engine = rows.engine(self.model.device, self.model.n_threads)
                start = self._start(b, there=False)
                result = yield from self._fit(b, rows.weights, engine, start)
                place = self.model.device, self.model.n_threads
                put(self.centers, {b: result.centers})
                put(self.labels, {b: rows.labels(result.labels, result.centers, *place)})
                self._count(b, result)

    def _start(self, b: int, there: bool) -> Any:
        """Return a member's initial centres, or the `init` that makes them.

        The centres are on the GPU only with `there`.
        """
        if self.starts is None:
            return self.drawn.get(b, self.model.init)
        start = self.starts[b]
        if there and not isinstance(start, np.ndarray):
            return start
        return checked(start, self.X[b], self.model.n_clusters)

    def _fit(self, b: int, weights: NDArray | None, engine: Engine, start: Any) -> Run:
        model, rows = self.model, self.X[b]
        check_range(engine, weights, start)
        rule = model._rule(engine)
        start = self.drawn[b] = seed(model, engine, self.home(rows), weights, start, self.states[b])
        return (
            yield from steps(
                engine, start, algorithm="auto", rule=rule, max_iter=model.max_iter,
                empty=model.empty,
            )
        )  # fmt: skip

    def _count(self, b: int, result: Result) -> None:
        """Store a member's inertia and number of iterations, and drop its initial centres."""
        del self.drawn[b]
        self.inertia[b], self.n_iter[b] = result.inertia, result.n_iter
        if not result.full:
            self.doubtful.append(b)

    def warn_of_fewer(self) -> None:
        """Warn if members have fewer distinct clusters than `n_clusters`."""
        k = self.model.n_clusters
        found = {b: n_distinct(self.labels[b], k) for b in sorted(self.doubtful)}
        fewer = [b for b, count in found.items() if count < k]
        if fewer:
            warn_caller(
                f"Fewer distinct clusters than n_clusters={k} were found in {len(fewer)} of "
                f"{len(self.X)} members, first in X[{fewer[0]}] ({found[fewer[0]]}). "
                "Possibly due to duplicate rows.",
                ConvergenceWarning,
            )


def put(place: Any, values: dict[int, Any]) -> None:
    """Copy the arrays of some members into `place`, an ndarray or a tensor, in one step."""
    if not values:
        return
    parts, where = list(values.values()), list(values)
    if isinstance(parts[0], np.ndarray):
        for b, part in values.items():
            place[b] = part
    elif isinstance(place, np.ndarray):
        place[where] = on_host(load_torch().stack(parts))
    elif len(parts) == len(place):
        load_torch().stack(parts, out=place)
    else:
        place[where] = load_torch().stack(parts)
