"""A fit like one before: what was decided then is not decided again.

A fit of few rows and features takes the host longer than the device, mostly for decisions that
follow from the parameters and from the shapes and types of what is given: the *form* of the fit.
What the engine of the first fit of a form knew by them is kept, and the next one goes on from there
with other numbers.  Only what came to a result without a word is kept, so nothing of a known form
is to be refused, or warned of, but for its numbers: every run looks at those.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from lloydia.backends.cuda.devices import check_memory
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.fetching import is_here
from lloydia.backends.cuda.launching import INTERPRETED
from lloydia.backends.cuda.low_run import LowRun
from lloydia.backends.engine import UNLIMITED
from lloydia.seeding.given import fits

if TYPE_CHECKING:
    from lloydia.kmeans import KMeans

__all__ = ["Again", "engine_like", "remember"]

# Forms that are kept.
MOST = 64
# What an estimator has only if more is to be done for it than to find its clusters.
OTHERS = frozenset(("_skl_callbacks", "_parent_callback_ctx", "feature_names_in_"))


class Known(NamedTuple):
    """What an engine knew by the form of its fit.

    Attributes
    ----------
    attributes : dict
        Its own before a run, but for the rows.
    n_slots, together : int
        Of its run.
    needed : int
        The bytes that this takes.
    """

    attributes: dict[str, Any]
    n_slots: int
    together: int
    needed: int


_known: dict[Hashable, Known] = {}


class Again(CUDA):
    """An engine for rows of few features that knows the form of its fit."""

    known: Known

    def start(
        self,
        centers: Any,
        algorithm: str,
        settles: bool = True,
        max_iter: int = UNLIMITED,
    ) -> None:
        known = self.known
        check_memory(known.needed, self.device)
        self.begun = self._begin(centers)
        self._build_low(None, self.begun, known.n_slots, known.together, settles)


@cache
def parameters_of(kind: type) -> Callable[[Any], tuple]:
    """Return what gets the parameters of an estimator that are part of a form as they are."""
    names = kind._get_param_names()  # type: ignore[attr-defined]
    return attrgetter(*(name for name in names if name not in ("init", "stop")))


def form_of(model: KMeans, X: Any, sample_weight: Any) -> Hashable:
    """Return the form of a fit; None of one that has none, which is asked for anew each time."""
    start = model.init
    if type(X) is not torch.Tensor or type(start) is not torch.Tensor or sample_weight is not None:
        return None
    if model.stop is not None or model._left_off or not OTHERS.isdisjoint(vars(model)):
        return None
    if X.layout is not torch.strided or X.dim() != 2 or X.requires_grad:
        return None
    if not X.is_contiguous() or X.is_neg():
        return None
    if not INTERPRETED and (not is_here(X.device) or torch.cuda.is_current_stream_capturing()):
        return None
    if not fits(start, X, model.n_clusters):
        return None
    values = parameters_of(type(model))(model)
    # Numbers of other types are equal, and may be refused.
    return (*values, *map(type, values), X.shape, X.dtype, X.device)


def engine_like(model: KMeans, X: Any, sample_weight: Any) -> Again | None:
    """Return an engine for a fit whose form is known, else None; the fit starts at ``init``."""
    form = form_of(model, X, sample_weight)
    try:
        known = _known.get(form)
    except TypeError:  # A parameter that nothing is known by: it is to be refused.
        return None
    if known is None:
        return None
    engine = Again.__new__(Again)
    engine.__dict__.update(known.attributes)
    engine.X, engine.known = X, known
    return engine


def remember(model: KMeans, X: Any, sample_weight: Any, engine: Any) -> None:
    """Keep what the engine of a fit knew that has come to its result."""
    run = vars(engine).get("run")
    if type(engine) is not CUDA or not isinstance(run, LowRun) or run.lattice is not None:
        return
    # These are said each time.
    warned = model.n_init not in (1, "auto") or model.n_clusters == 1
    form = form_of(model, X, sample_weight)
    if form is None or warned or model.verbose:
        return
    fresh = CUDA(engine.X, None, engine.name)
    for name in ("k", "max_iter", "lag", "ranges"):
        setattr(fresh, name, getattr(engine, name))
    fresh.unchecked = True
    needed = fresh.needed(fresh.k)
    del fresh.X
    if len(_known) >= MOST:
        _known.clear()
    _known[form] = Known(vars(fresh), run.n_slots, run.together, needed)
