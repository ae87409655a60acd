"""The engines, and how one is chosen.

:class:`lloydia.backends.engine.Engine` says what each method of an engine does.  :mod:`reference`
is the oracle, :mod:`cpu` and :mod:`cuda` are fast, :mod:`numpy_first` has few rows on the CPU, and
:mod:`parts` is made of others: of blocks that are read (:mod:`stream`), of several GPUs, or of a
cluster's workers (:mod:`cluster`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from lloydia.backends import numpy_first
from lloydia.backends.device_names import ONE, one_gpu_name, several_gpus, unknown_device
from lloydia.backends.engine import Engine
from lloydia.data.chunks.source import Chunks
from lloydia.data.collections import Partitions
from lloydia.data.device_arrays import on_gpu
from lloydia.imports import load
from lloydia.spelling import either, option

__all__ = ["StreamContext", "batch_groups", "choose", "on_plan", "one_gpu", "put", "streams"]

_plan_callbacks: ContextVar[tuple[Callable[[object], object], ...]] = ContextVar(
    "plan_callbacks", default=()
)

# Returns the context of a stream: work in it is queued there.
StreamContext = Callable[[], AbstractContextManager]


def choose(
    device: str, X: Any, weights: Any, n_threads: int | None, spare: float = math.inf
) -> Engine:
    """Put `X` in place on a device and return its engine.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "cuda:0", ..., "cuda:all", "cuda:0,1", ..., "reference"}
        ``"auto"`` is where the array is; a NumPy array or SciPy matrix stays on the CPU.
        ``"cuda"`` is the GPU that the array is on, or torch's current one; ``"cuda:all"`` and
        ``"cuda:0,1"`` cut the rows evenly over GPUs of this host.  ``"reference"`` is the NumPy
        oracle: slow, for tests and study.
    X : ndarray of shape (n, d), CSR matrix, tensor on a GPU, Chunks, or Partitions of Dask's
        Floating, finite, in any layout; of :func:`lloydia.chunks` the blocks may turn out not to be
        finite as they are read.
    weights : ndarray of shape (n,), float64, or None; Weights if X is Partitions
    n_threads : int or None
        None: as many as this process may use.
    spare : float
        Bytes a row that ``algorithm="auto"`` may take on the CPU for bounds of many centres.

    Raises
    ------
    ValueError
        For a device that is not there, or not the one that `X` is on; there is no silent
        fallback.
    ImportError
        For a GPU, without PyTorch and Triton.
    MemoryError
        For chunks that need more than they may take, and a GPU that has too little even to be sent
        rows in blocks.
    """
    if isinstance(X, Chunks):
        return _of_chunks(device, X, weights, n_threads)
    if isinstance(X, Partitions):
        return load("lloydia.backends.cluster").engine(X, weights, device, n_threads)
    there = on_gpu(X)
    if device in ("auto", "cpu") and not there:
        return numpy_first.engine_for(X, weights, n_threads, spare)
    if name := _gpu_name(device, there):
        return _on_gpu(name, X, weights, there)
    if several_gpus(device):
        return _on_gpus(device, X, weights)
    if device not in ("cpu", "reference"):
        raise unknown_device(device)
    if there:
        raise ValueError(
            f"X is on {X.device}, which {option('device', device)} does not include: use "
            f"{option('device', 'auto')}, or copy X to the CPU (X.cpu() for torch, X.get() for "
            "CuPy)."
        )
    return load("lloydia.backends.reference").Reference(X, weights)


def put(device: str, X: NDArray) -> Any:
    """Return an array on the host where a device has it: a tensor on that GPU, or `X` itself.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "cuda:0", ...}
        ``"auto"`` is the host.
    X : ndarray of shape (n, d)

    Raises
    ------
    ValueError
        For a device that is not there, or not one.
    ImportError
        For a GPU, without PyTorch and Triton.
    MemoryError
        If the GPU has too little memory free.
    """
    if device in ("auto", "cpu"):
        return X
    if not (name := _gpu_name(device, False)):
        raise unknown_device(device, ONE)
    with _extra(device):
        devices = load("lloydia.backends.cuda.runtime.devices")
        there = load("lloydia.backends.cuda.runtime.launching").place(devices.find(name, X))
        # What computes with it has it in float64, too.
        devices.check_memory(X.nbytes + 8 * X.size, there)
        return load("lloydia.backends.cuda.runtime.upload").to_device(X, there)


def _of_chunks(device: str, X: Chunks, weights: NDArray | None, n_threads: int | None) -> Engine:
    """Read all rows where they fit into the memory that they may take, else some of them again."""
    plan = X.plan(weights is not None, n_threads)
    _report_plan(plan)
    if plan.whole:
        return choose(device, X.load(plan), weights, n_threads, plan.spare)
    gpu = _gpu_name(device, False)
    if not gpu and device not in ("auto", "cpu"):
        raise ValueError(
            f"{option('device', device)} needs all rows in memory, and {X.where} does not fit into "
            f"{option('memory', f'{plan.memory // 10**6}MB')}: use {option('device', 'cpu')} or "
            f"{option('device', 'cuda')}."
        )
    blocks = load("lloydia.data.chunks.reader").Reader(X, plan.rows, plan.n_kept, plan.spill)
    if gpu:
        with _extra(device):
            return _out_of_core(
                load("lloydia.backends.cuda.runtime.devices").find(gpu, X), blocks, weights
            )
    stream = load("lloydia.backends.stream").Stream(blocks, weights, n_threads)
    return load("lloydia.backends.parts").Parts(stream)


def one_gpu(device: str, X: Any) -> bool:
    """Return whether X is on a GPU, and what the device means is one."""
    return on_gpu(X) and bool(_gpu_name(device, True))


def streams(device: str, X: Any) -> AbstractContextManager[Sequence[StreamContext]]:
    """Return the contexts of streams in which the members of a batch are computed side by side.

    On the CPU there is one, because one member keeps all threads busy.  At its end the context
    waits for all work that was queued.
    """
    if name := _gpu_name(device, on_gpu(X)):
        with _extra(name):
            number = load("lloydia.backends.cuda.runtime.devices").find(name, X)
            return load("lloydia.backends.cuda.batched.streams").streams_of(number)
    return nullcontext([nullcontext])


@contextmanager
def batch_groups(
    device: str,
    X: Any,
    n_clusters: int,
    empty_stops: bool,
    starts: Any = None,
    draw: Callable[[Any], Any] | None = None,
) -> Iterator[Iterable[dict[int, Engine]]]:
    """Open the groups of a batch's members whose iterations are computed together: on a GPU.

    Each group is an engine for each of its members, by number.  Start all of them before the first
    report is waited for; ask for an inertia when all have come to their end.  They fill no empty
    clusters: a member that has some, and `empty_stops`, goes no further and is to be fitted by
    itself, as are those that are in no group.

    Parameters
    ----------
    device, X
        As in :func:`choose`; without weights.
    n_clusters : int
    empty_stops : bool
        As in :meth:`Engine.start`.
    starts : array of shape (members, n_clusters, n_features), optional
        Beside X, in float32: where members will be started, if that is known.  A member whose
        start is not finite is in no group.
    draw : callable, optional
        Returns some start of a member, as it will be drawn, given its engine: the kernels for that
        are compiled with those for iterations.
    """
    name = _gpu_name(device, on_gpu(X))
    if not name:
        yield ()
        return
    with _extra(name):
        name = load("lloydia.backends.cuda.runtime.devices").find(name, X)
        member = load("lloydia.backends.cuda.batched.item")
        compiling = load("lloydia.backends.cuda.batched.rehearsal").compiling
    batch = X, n_clusters, empty_stops, starts
    with load("lloydia.backends.cuda.runtime.own_device").on(name), compiling(*batch, draw):
        yield member.groups(name, *batch)


def _gpu_name(device: str, there: bool) -> str:
    """Return ``"cuda"`` or ``"cuda:N"`` where a GPU is meant, else an empty string."""
    return "cuda" if device == "auto" and there else one_gpu_name(str(device))


def _on_gpu(device: str, X: Any, weights: NDArray | None, there: bool) -> Engine:
    _refuse_sparse(device, X)
    with _extra(device):
        name = load("lloydia.backends.cuda.runtime.devices").find(device, X)
        fits = load("lloydia.backends.cuda.rows.memory").fits
        if not there and not fits(*X.shape, X.dtype.itemsize, weights is not None, name):
            return _out_of_core(name, X, weights)
        return load("lloydia.backends.cuda.engine").CUDA(X, weights, name)


def _out_of_core(name: str, X: Any, weights: NDArray | None) -> Engine:
    """Return the engine of rows on the host that a GPU has no room for, and say its plan."""
    group = load("lloydia.backends.cuda.out_of_core.group").out_of_core(X, weights, name)
    _report_plan(group.plan)
    return load("lloydia.backends.parts").Parts(group)


def _report_plan(plan: object) -> None:
    for callback in _plan_callbacks.get():
        callback(plan)


@contextmanager
def on_plan(function: Callable[[object], object]) -> Iterator[None]:
    """Call `function` with the plan of every engine in this context that works out of core.

    A plan is a sentence (its ``str``) about what stays on the GPU and what each pass sends.
    """
    token = _plan_callbacks.set((*_plan_callbacks.get(), function))
    try:
        yield
    finally:
        _plan_callbacks.reset(token)


def _on_gpus(device: str, X: Any, weights: NDArray | None) -> Engine:
    _refuse_sparse(device, X)
    with _extra(device):
        names = load("lloydia.backends.cuda.runtime.devices").find_several(device, X)
        if len(names) == 1:
            return _on_gpu(names[0], X, weights, on_gpu(X))
        return load("lloydia.backends.cuda.multi_gpu.gpus").distribute_rows(X, weights, names)


def _refuse_sparse(device: str, X: Any) -> None:
    if sp.issparse(X):
        raise ValueError(
            f"{option('device', device)} takes dense data and X is sparse: use "
            f"{option('device', 'cpu')}, or "
            f"{either('X.toarray()', 'save the rows as a dense array (.npy)')}."
        )


class _extra:
    """The context that says how to get what the GPU engine needs, where it is missing."""

    # A class: a generator takes ten times as long, in every fit.
    def __init__(self, device: str) -> None:
        self.device = device

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "triton"):
            raise ImportError(
                f"{option('device', self.device)} needs PyTorch and Triton: pip install "
                f"torch triton, or use {option('device', 'cpu')}."
            ) from None
