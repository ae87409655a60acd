"""A batch is rehearsed, as a fit is: then all its kernels are compiled side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy as np
import torch

from lloydia.backends.cuda.batched.batch import Batch
from lloydia.backends.cuda.batched.item import BatchItem
from lloydia.backends.cuda.batched.rows import BatchRows, Measured
from lloydia.backends.cuda.rehearsal import LARGEST, AbsentSeeder, forms_of
from lloydia.backends.cuda.rows.magnitudes import new_bounds
from lloydia.backends.cuda.run_kinds import run_kind
from lloydia.backends.cuda.runtime.forms import at_first, compile_together
from lloydia.backends.cuda.runtime.launching import INTERPRETED
from lloydia.exact import sums as exact

__all__ = ["compiling", "make_batch"]

# Items of a rehearsal.  The rows of the second one may begin at no multiple of 16 bytes, for which
# seeding has other kernels; more items have no others.
ITEMS = 2


def make_batch(
    X: Any, k: int, empty_stops: bool, starts: Any, draw: Callable[[BatchItem], Any] | None
) -> None:
    """Fit a batch of rows without numbers, like those of X; see :func:`compiling`."""
    (n, d), nowhere = X.shape[1:], {"device": "meta"}
    kind = X.dtype if isinstance(X, torch.Tensor) else getattr(torch, str(X.dtype))
    absent = torch.empty((ITEMS, n, d), dtype=kind, **nowhere)
    bounds = new_bounds(absent)
    rows = BatchRows(absent, bounds)
    own = None if starts is None else torch.empty((ITEMS, k, d), dtype=rows.wide, **nowhere)
    batch = Batch(k, empty_stops, own, rows, bounds)
    largest, smallest = np.full((ITEMS, d), LARGEST), np.full((ITEMS, d), 1.0 / (n * d))
    bits = exact.bits_a_limb(n)
    (n_limbs, *_) = exact.limbs_for(exact.span_of(largest, smallest), bits, rows.dtype)
    grid = exact.Grid(bits, int(n_limbs), exact.exponents_of(largest), 0, False)
    rows.measured = Measured(largest, smallest, grid)
    if starts is None and draw is not None:
        for number in range(ITEMS):
            item = BatchItem(batch, number)
            item.seeder = AbsentSeeder(item.data)
            draw(item)
    batch.starts = [np.zeros((k, d), dtype=rows.dtype)] * ITEMS
    batch.queued = 2
    batch.launch()
    batch.unassigned = [*range(ITEMS)]
    batch.finish()
    _ = batch.mean_variances


def compiling(
    X: Any, k: int, empty_stops: bool, starts: Any, draw: Callable[[BatchItem], Any] | None
) -> AbstractContextManager[None]:
    """Return a context in which all kernels of batches are compiled when the first is needed.

    Parameters
    ----------
    X, k, empty_stops, starts
        As of :func:`lloydia.backends.cuda.batched.batch.batches`.
    draw : callable or None
        Returns the start of an item, without `starts`.
    """
    if INTERPRETED or not run_kind(X.shape[2]).in_batches:
        return nullcontext()
    rehearsed = []

    def begin() -> None:
        if rehearsed:
            return
        rehearsed.append(True)
        # If it fails, each launch compiles the kernel that it needs.
        with suppress(Exception):
            forms = forms_of(lambda: make_batch(X, k, empty_stops, starts, draw))
            compile_together(forms, [torch.cuda.current_device()])

    return at_first(begin)
