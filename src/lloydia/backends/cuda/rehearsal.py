"""Work is rehearsed before its first kernel is needed, so that all are compiled side by side.

A rehearsal is the work itself, such as a fit, for rows that have a shape and a type and no numbers:
tensors on PyTorch's device ``"meta"``.  Its launches are collected (:mod:`runtime.forms`); its
reports are 0, as if no row changed any more, and whatever else the host reads is 1.  The real work
launches the same forms, since the same code decides on them; where it decides by what the rows are,
another form is compiled when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import Context
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.overrides import TorchFunctionMode

from lloydia.backends.cuda.dataset import Dataset
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.rows.magnitudes import new_bounds
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.forms import Forms, compile_together, rehearsal
from lloydia.backends.cuda.runtime.own_device import current
from lloydia.backends.cuda.seeding.seeder import Seeder
from lloydia.backends.engine import Engine, ExpectedRun
from lloydia.exact import sums as exact

__all__ = [
    "LARGEST",
    "REHEARSED_SEEDS",
    "AbsentRows",
    "AbsentSeeder",
    "KnownAtStart",
    "forms_now_and_later",
    "forms_of",
    "like",
    "make_run",
    "rehearse",
]

# The largest magnitude of a feature; with a smallest one of 1 / (n d), which some feature has, sums
# have as many limbs as those of normally distributed rows.
LARGEST = 4.0
# Seeds that are rehearsed, where each is asked for by itself.
REHEARSED_SEEDS = 4


def absent(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor without numbers: of the same shape, type and alignment to 16 bytes."""
    before = x.data_ptr() % 16 // x.element_size()
    return torch.empty(before + x.numel(), dtype=x.dtype, device="meta")[before:].view(x.shape)


class KnownAtStart(NamedTuple):
    """What was known of rows when some work began; kernels are chosen by it.

    Attributes
    ----------
    measured : bool
        Whether the measurement of their magnitudes was queued by itself.
    magnitudes : bool
        Whether the host knew their magnitudes.
    limbs : int or None
        How many limbs earlier rows of their shape needed.
    """

    measured: bool
    magnitudes: bool
    limbs: int | None

    @classmethod
    def of(cls, rows: Dataset) -> KnownAtStart:
        """Return what is known of rows now."""
        return cls(rows.bounds is not None, rows.knows_magnitudes, rows.limbs_before)


class AbsentRows(Dataset):
    """Rows without numbers, like those of another data set as it was when some work began.

    Their magnitudes are those of the others, if these are known by now.
    """

    def __init__(self, rows: Dataset, at_start: KnownAtStart) -> None:
        super().__init__(absent(rows.X), None if rows.weights is None else absent(rows.weights))
        self.like, self.at_start, self.in_range = rows, at_start, rows.in_range
        if at_start.magnitudes:
            self.take_magnitudes(rows.magnitudes())
        if at_start.measured:
            self.bounds = AsyncCopy(new_bounds(self.X))

    @property
    def limbs_before(self) -> int | None:
        return self.at_start.limbs

    @cached_property
    def weight_magnitudes(self) -> tuple[float, float]:
        return self.like.weight_magnitudes

    def magnitudes(self) -> exact.Magnitudes:
        if self._magnitudes is None:
            super().magnitudes()  # for what it launches
            self._magnitudes = self._found_by_others()
        return self._magnitudes

    def _found_by_others(self) -> exact.Magnitudes:
        """Return the magnitudes of the other rows, or usual ones if they are not known yet."""
        if self.like.knows_magnitudes:
            return self.like.magnitudes()
        n, d = self.n_samples, self.n_features
        largest, smallest = np.full(d, LARGEST), np.full(d, 1.0 / (n * d))
        return exact.Magnitudes(n, largest, smallest, *self.weight_magnitudes)


class AbsentSeeder(Seeder):
    """Seeds of rows without numbers.

    A round of k-means|| draws as many rows as it does on average.  After a few farthest rows all D
    are 0, which ends a seeding by them.
    """

    n_farthest = 0

    def seed_farthest(self) -> int:
        self.n_farthest += 1
        row = super().seed_farthest()
        return row if self.n_farthest <= REHEARSED_SEEDS else -1

    def seed_sample(self, key: int, factor: float) -> NDArray[np.int64]:
        super().seed_sample(key, factor)
        return np.arange(min(round(factor), self.rows.n_samples))


# What the host reads of tensors.
READS: dict[Callable, Callable[[torch.Tensor], Any]] = {
    torch.Tensor.cpu: lambda x: x,
    torch.Tensor.numpy: torch.Tensor.numpy,
    torch.Tensor.item: torch.Tensor.item,
    torch.Tensor.tolist: torch.Tensor.tolist,
    torch.Tensor.__int__: int,
    torch.Tensor.__float__: float,
    torch.Tensor.__bool__: bool,
    torch.Tensor.__index__: int,
}


def found(x: torch.Tensor, **options: Any) -> torch.Tensor:
    """Return where a tensor is not 0, as if there were two places."""
    return torch.zeros((2, x.ndim), dtype=torch.int64, device="meta")


def counts(x: torch.Tensor, *, minlength: int) -> torch.Tensor:
    """Return how often each number occurs."""
    return torch.zeros(minlength, dtype=torch.int64, device="meta")


def item_of(x: torch.Tensor, key: Any) -> torch.Tensor:
    """Return ``x[key]``."""
    if not isinstance(key, torch.Tensor):
        return x[key]
    return torch.empty((*key.shape, *x.shape[1:]), dtype=x.dtype, device="meta")


def alike(x: torch.Tensor, *others: Any) -> torch.Tensor:
    """Return a tensor of the same shape and type."""
    return torch.empty(x.shape, dtype=x.dtype, device="meta")


# Operations whose results have a shape that depends on numbers; and some for which PyTorch imports
# a computer algebra system.
SHAPED: dict[Callable, Callable[..., torch.Tensor]] = {
    torch.nonzero: found,
    torch.Tensor.nonzero: found,
    torch.bincount: counts,
    torch.Tensor.__getitem__: item_of,
    torch.empty_like: alike,
    torch.ldexp: alike,
}


class ReadsOnes(TorchFunctionMode):
    """In this context the host reads ones of tensors that have no numbers."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        options = kwargs or {}
        if func in READS and args[0].is_meta:
            return READS[func](torch.ones(args[0].shape, dtype=args[0].dtype, device="cpu"))
        if func in SHAPED and args[0].is_meta:
            return SHAPED[func](*args, **options)
        return func(*args, **options)


def forms_of(work: Callable[[], object]) -> Forms:
    """Return the forms of kernels that work on absent rows launches, as far as they can be known.

    It is done in a context of its own, so that it shows no progress.
    """
    return Context().run(_forms_of, work)


def _forms_of(work: Callable[[], object]) -> Forms:
    # After an operation that needs numbers, it is not known what follows: launches compile that.
    with rehearsal() as forms, ReadsOnes(), suppress(Exception):
        work()
    return forms


def like(data: Dataset, at_start: KnownAtStart) -> CUDA:
    """Return an engine of rows without numbers, like those of a data set as it was at a start."""
    engine = CUDA.over(AbsentRows(data, at_start))
    engine.seeder = AbsentSeeder(engine.data)
    return engine


def make_run(engine: Engine, expected: ExpectedRun) -> None:
    """Make a run, with all kinds of iterations."""
    centers = expected.start(engine)
    if isinstance(centers, torch.Tensor):
        centers = absent(centers)
    engine.tolerance = expected.tolerance
    empty_stops, max_iter = expected.empty_stops, expected.max_iter
    engine.start(centers, "lloyd", empty_stops=empty_stops, max_iter=max_iter)
    # The reports say that no row changes any more, so that later iterations are pruned.
    for _ in range(min(3, max_iter)):
        engine.iterate(expected.costed).result()
    engine.assign()
    float(engine.inertia())
    if expected.tolerance > 0.0:
        engine.mean_variance()


def forms_now_and_later(
    data: Dataset, at_start: KnownAtStart, work: Callable[[CUDA], object]
) -> Iterator[Forms]:
    """Yield the forms of work on some rows, then those of the same on others of their shape.

    Later work may guess the number of limbs, which is known by then, and so launch other kernels.
    """
    engine = like(data, at_start)
    yield forms_of(lambda: work(engine))
    absent_rows = engine.data
    if at_start.limbs is None and absent_rows.kind.stores_fp16 and absent_rows.knows_magnitudes:
        others = Dataset(data.X, data.weights)
        others.in_range = data.in_range
        then = KnownAtStart(measured=False, magnitudes=False, limbs=absent_rows.grid.n_limbs)
        yield forms_of(lambda: work(like(others, then)))


def rehearse(data: Dataset, work: Callable[[CUDA], object]) -> Callable[[], None]:
    """Return what compiles the kernels of work that begins now; it rehearses it with an engine.

    It does so again when the magnitudes of the rows are known.
    """
    rehearsed, at_start = set(), KnownAtStart.of(data)

    def begin() -> None:
        known = data.knows_magnitudes
        if known in rehearsed:
            return
        rehearsed.add(known)
        # If it fails, each launch compiles the kernel that it needs.
        with current(data.device), suppress(Exception):
            for forms in forms_now_and_later(data, at_start, work):
                compile_together(forms, [torch.cuda.current_device()])

    return begin
