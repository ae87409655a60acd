"""Parts on several GPUs of one host, each asked by a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.multi_gpu.own_run import OwnRun
from lloydia.backends.cuda.multi_gpu.part import CUDAPart, place_part
from lloydia.backends.cuda.rows.memory import needed_bytes
from lloydia.backends.cuda.runtime.devices import check_memory
from lloydia.backends.cuda.runtime.forms import at_first
from lloydia.backends.cuda.runtime.launching import INTERPRETED, place
from lloydia.spelling import option

__all__ = ["Threads"]


class Threads:
    """Parts on GPUs, each asked by a thread of its own; see :class:`lloydia.backends.group.Group`.

    Parameters
    ----------
    X : torch.Tensor on a GPU, or ndarray: shape (n, d)
        Cut evenly.  What is not on a part's GPU is copied there: from the host in pinned buffers,
        from another GPU directly.
    weights : ndarray of shape (n,), float64, or None
    names : sequence of str
        Of the GPUs, one a part.

    Attributes
    ----------
    begin : callable or None
        What a thread does when it needs a kernel first; see :func:`runtime.forms.at_first`.
    """

    begin: Callable[[], None] | None = None

    def __init__(self, X: Any, weights: NDArray | None, names: Sequence[str]) -> None:
        devices = [place(name) for name in names]
        # Triton's interpreter does one thing at a time.
        self.pool = ThreadPoolExecutor(1 if INTERPRETED else len(names))
        self.home = X.device if isinstance(X, torch.Tensor) else None
        edges = np.linspace(0, len(X), len(names) + 1).astype(np.int64).tolist()

        def part(a: int, b: int, name: str) -> CUDAPart[OwnRun]:
            own = None if weights is None else weights[a:b]
            try:
                return place_part(_brought(X[a:b], place(name)), own, name)
            except MemoryError as error:
                raise MemoryError(
                    f"{error} Several GPUs must hold all rows; with {option('device', name)}, one "
                    "GPU reads rows on the CPU in blocks."
                ) from None

        jobs = [
            self._submit(device, part, a, b, name)
            for device, (a, b), name in zip(devices, pairwise(edges), names)
        ]
        self.parts: list[CUDAPart[OwnRun]] = _results(jobs)
        self.lengths = [part.n_samples for part in self.parts]
        first = self.parts[0]
        self.dtype, self.n_features = first.dtype, first.n_features
        self.few_rows_device = names[0]
        self.name = "cuda:" + ",".join(name.removeprefix("cuda:") for name in names)

    def _submit(self, device: torch.device, function: Callable, *arguments: Any) -> Future:
        """Have a thread do something in the stream of a device that is the caller's.

        And in that of the rows' home, whose stream is part of a copy from there.
        """
        begin = self.begin
        # The last one entered is the current device.
        places = [on for on in (self.home, device) if on is not None]
        streams = [torch.cuda.current_stream(on) for on in places if on.type == "cuda"]

        def task() -> Any:
            with ExitStack() as stack:
                for stream in streams:
                    stack.enter_context(torch.cuda.stream(stream))
                if begin is not None:
                    stack.enter_context(at_first(begin))
                return function(*arguments)

        return self.pool.submit(task)

    @contextmanager
    def compiling(self, begin: Callable[[], None]) -> Iterator[None]:
        """In this context, do `begin` when a thread, or the caller's, needs a kernel first."""
        self.begin = begin
        try:
            with at_first(begin):
                yield
        finally:
            self.begin = None

    def each(self, method: str, *arguments: Any) -> list[Any]:
        own = dict.fromkeys(range(len(self.parts)), arguments)
        return list(self.some(method, own).values())

    def total(self, method: str, *arguments: Any) -> Any:
        return reduce(add, self.each(method, *arguments))

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        jobs = [
            self._submit(self.parts[p].device, getattr(self.parts[p], method), *own)
            for p, own in arguments.items()
        ]
        return dict(zip(arguments, _results(jobs)))

    def labels(self) -> Any:
        """Return the labels of all rows, on the GPU that the rows came from or on the host."""
        if self.home is None:
            return np.concatenate(self.each("labels"))
        return torch.cat([part.own_run.run.memory.labels.to(self.home) for part in self.parts])

    def distances(self, centers: NDArray) -> Any:
        """Return the distances of all rows to all centres, where :meth:`labels` are."""
        if self.home is None:
            return np.vstack(self.each("distances", centers))
        return torch.vstack([part.distances_there(centers).to(self.home) for part in self.parts])


def _results(jobs: Sequence[Future]) -> list[Any]:
    """Wait for all jobs, even if one has failed, so that none continues; return their results."""
    wait(jobs)
    return [job.result() for job in jobs]


def _brought(X: Any, device: torch.device) -> Any:
    """Return rows that are on some GPU on this one; those on the host stay there."""
    if not isinstance(X, torch.Tensor) or X.device == device:
        return X
    n, d = X.shape
    check_memory(needed_bytes(n, d, X.dtype.itemsize, copied=True), device)
    return X.to(device)
