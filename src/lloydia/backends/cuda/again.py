"""A fit like one before: what was decided then is not decided again.

A fit of few rows takes the host longer than the device, mostly for decisions that follow from the
parameters and from the shapes and types of what is given: the *form* of the fit.  What the engine
of the first fit of a form knew by them is kept, and the next one goes on from there with other
numbers.  Only the form of a fit that came to a result is kept, whose parameters drew no warning: so
nothing of a known form is to be refused, or warned of, but for its numbers, and every run looks at
those.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, SupportsFloat

import torch

from lloydia.backends.cuda.devices import check_memory
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.fetching import is_here
from lloydia.backends.cuda.first_iterations import FirstIterations, KnownIterations
from lloydia.backends.cuda.first_launch import FirstLaunch, KnownLaunch
from lloydia.backends.cuda.found_grid import limbs_before
from lloydia.backends.cuda.launching import INTERPRETED
from lloydia.backends.cuda.low_run import LowRun
from lloydia.backends.engine import UNLIMITED
from lloydia.loop import LIMIT, Result
from lloydia.progress.iterations import is_watched
from lloydia.seeding.given import fits

if TYPE_CHECKING:
    from lloydia.kmeans import KMeans

__all__ = ["Again", "engine_like", "remember"]

# Forms that are kept.
MOST = 64
# Parameters that are part of a form as they are; of the others, the start is beside the rows, and
# there is no rule.
PARAMETERS = (
    "n_clusters", "n_init", "max_iter", "tol", "verbose", "random_state", "copy_x", "algorithm",
    "device", "n_threads", "empty",
)  # fmt: skip
values_of = attrgetter(*PARAMETERS)
# What an estimator has only if more is to be done for it than to find clusters.
MORE = frozenset(("_skl_callbacks", "_parent_callback_ctx", "feature_names_in_"))


@dataclass
class Known:
    """What an engine knew by the form of its fit.

    Attributes
    ----------
    attributes : dict
        The engine's before a run, but for the rows.
    needed : int
        The bytes that its run takes.
    low : tuple of int, or None
        `n_slots` and `together` of a run over few features.
    first : KnownLaunch or KnownIterations, optional
        What it begins with, once such a run was planned.
    """

    attributes: dict[str, Any]
    needed: int
    low: tuple[int, int] | None
    first: KnownLaunch | KnownIterations | None = None


_known: dict[Hashable, Known] = {}


class Again(CUDA):
    """An engine that knows the form of its fit, for one run.

    Attributes
    ----------
    known : Known
    found : tuple of two tensors
        Labels and centres, when the run is over.
    """

    known: Known
    found: tuple[torch.Tensor, torch.Tensor]

    def start(
        self,
        centers: Any,
        algorithm: str,
        settles: bool = True,
        max_iter: int = UNLIMITED,
    ) -> None:
        # On its device, which has been the current one since the form was asked for.
        launched, queued = self.first_launch, self.first_iterations
        nothing_yet = launched is None and queued is None
        if nothing_yet:
            check_memory(self.known.needed, self.device)
            self.begun = self._begin(centers)
        if self.known.low is None:
            self._build_tensor(self.begun, settles)
        else:
            self._build_low(None, self.begun, *self.known.low, settles)
        if launched is not None:
            self.queued = self.launched = launched.known.launched[0]
        if nothing_yet and self.known.first is None:
            self.known.first = self._first_like()
        # They are the run's now, and not those of one that begins again.
        self.first_launch = self.first_iterations = None

    def inertia(self) -> SupportsFloat:
        inertia, run, ending = super().inertia(), self.run, self.ending
        self.found = run.labels, run.current
        # No more is asked of the run, but for its ending, or of what was stored of the rows: what
        # that does not need is given back while the device comes to its end.
        self.forget_run()
        self.ending, self.halves = ending, None
        return inertia

    def labels(self) -> torch.Tensor:
        return self.found[0]

    def centers(self) -> torch.Tensor:
        return self.found[1]

    def _first_like(self) -> KnownLaunch | KnownIterations | None:
        """Return what is known by now of what the next run begins with.

        A run that is watched finds no limit, and begins with other launches.
        """
        if is_watched() or not self._aligned(self.begun):
            return None
        n_iterations = min(self.run.together, self.max_iter)
        if isinstance(self.run, LowRun):
            return self.run.first_like(n_iterations, n_iterations == self.max_iter)
        # What a limit is found by is not among it.
        if self.tolerance != 0.0 or not isinstance(self.begun, torch.Tensor):
            return None
        return KnownIterations.of(self.run, self.begun, n_iterations)

    def _aligned(self, begun: Any) -> bool:
        """Return whether the rows and a start on the device begin where what comes first wants."""
        there = isinstance(begun, torch.Tensor)
        return there and self.X.data_ptr() % 16 == begun.data_ptr() % 16 == 0

    def at_once(self, centers: torch.Tensor, tol: float) -> Result | None:
        """Launch what a run begins with; return its result if that is there then.

        Else the loop goes on with it, or begins it.
        """
        known = self.known.first
        if known is None or is_watched():
            return None
        if isinstance(known, KnownIterations) and known.n_limbs != limbs_before(self.X):
            # This fit is by another guess, and teaches what comes first by that.
            self.known.first = None
            return None
        check_memory(self.known.needed, self.device)
        self.begun = begun = self._begin(centers)
        if not self._aligned(begun):
            return None
        assert isinstance(begun, torch.Tensor)
        if isinstance(known, KnownIterations):
            self.first_iterations = FirstIterations(known, self.X, begun)
            return None
        self.first_launch = first = FirstLaunch(known, self.X, begun)
        n_iter, ends, _ = known.launched
        found = first.outcome(self.most_bits) if ends and tol == 0.0 else None
        if found is None:
            return None
        self.n_distances = (n_iter + 1) * self.n_samples * self.k
        self.n_rechecked = found.rechecked
        return Result(
            found.labels, found.centers, found.inertia, n_iter, False, LIMIT, [], self.algorithm,
            found.full,
        )  # fmt: skip


def form_of(model: KMeans, X: Any, sample_weight: Any) -> tuple | None:
    """Return the form of a fit; None of one that has none, which is looked at each time.

    It may have no hash, by a parameter that has none: then nothing is known by it.
    """
    if type(X) is not torch.Tensor or sample_weight is not None:
        return None
    if model.stop is not None or model._left_off or not MORE.isdisjoint(vars(model)):
        return None
    if X.layout is not torch.strided or X.dim() != 2 or X.requires_grad:
        return None
    if not X.is_contiguous() or X.is_neg():
        return None
    if not INTERPRETED and (not is_here(X.device) or torch.cuda.is_current_stream_capturing()):
        return None
    if type(model.n_clusters) is not int or not fits(model.init, X, model.n_clusters):
        return None
    values = values_of(model)
    # Numbers of other types are equal, and may be refused.
    return (*values, *map(type, values), X.shape, X.dtype, X.device)


def known_by(form: tuple) -> Known | None:
    """Return what is known by a form, if anything is."""
    try:
        return _known.get(form)
    except TypeError:
        return None


def engine_like(model: KMeans, X: Any, sample_weight: Any) -> Again | None:
    """Return an engine for a fit whose form is known, else None; the fit starts at ``init``."""
    form = form_of(model, X, sample_weight)
    known = None if form is None else known_by(form)
    if known is None:
        return None
    engine = Again.__new__(Again)
    engine.__dict__.update(known.attributes)
    engine.X, engine.known = X, known
    return engine


def remember(model: KMeans, X: Any, sample_weight: Any, engine: Any) -> None:
    """Keep what the engine of a fit knew that has come to its result."""
    # To these something is said each time.
    noisy = model.verbose or model.n_init not in (1, "auto") or model.n_clusters == 1
    form = None if noisy or type(engine) is not CUDA else form_of(model, X, sample_weight)
    if form is None or known_by(form) is not None:
        return
    run, low = engine.run, None
    # Not by its constructor, which asks for memory that the run still has.
    fresh = CUDA.__new__(CUDA)
    fresh.device, fresh.name = engine.device, engine.name
    fresh._hold(engine.X)
    for name in ("ranges", "k", "max_iter", "lag"):
        setattr(fresh, name, getattr(engine, name))
    if isinstance(run, LowRun):
        if run.lattice is not None:  # It began again, or moved rows to empty clusters.
            return
        fresh.unchecked = True
        low = run.n_slots, run.together
    needed = fresh.needed(fresh.k)
    del fresh.X
    if len(_known) >= MOST:
        _known.clear()
    with suppress(TypeError):  # The form has no hash.
        _known[form] = Known(vars(fresh), needed, low)
