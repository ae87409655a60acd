"""The forms of kernels: each is compiled once, at its first launch or before.

Triton compiles a kernel again for other types, constants and options, for addresses that are not
multiples of 16 bytes, and for some integers.  What a launch depends on is its *form*.  All forms of
some work are compiled in parallel if the work is rehearsed first: its launches are then collected
instead of queued.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from lloydia.backends.cuda.runtime.compiling import compiled_now, compilers, length_of
from lloydia.backends.cuda.runtime.driver import prefer_shared
from lloydia.backends.cuda.runtime.loaded_kernels import LoadedKernel

__all__ = ["Form", "Forms", "at_first", "collected", "compile_together", "loaded", "rehearsal"]


class Form(NamedTuple):
    """The form of a kernel that a launch needs.

    Attributes
    ----------
    kernel : triton kernel
    key : hashable
        Determines the form.
    args, options
        Of a launch of this form.
    percent : int or None
        The percentage of a multiprocessor's shared memory that the kernel prefers.
    """

    kernel: Any
    key: Hashable
    args: tuple
    options: dict
    percent: int | None

    def load(self, device: int) -> LoadedKernel:
        """Compile it, or find it on disk, and load it on the GPU with this number.

        A kernel that is compiled for one GPU is found on disk for the others, which wait for it.
        """
        with _compiling.setdefault((id(self.kernel), self.key), Lock()):
            kernel = compiled_now(self.kernel, self.args, self.options, device)
        if self.percent is not None:
            prefer_shared(kernel.function, self.percent)
        return kernel


# Forms by kernel and key.  A kernel is known by its identity, since hashing it takes longer; a form
# holds its kernel.
Forms = dict[tuple[int, Hashable], Form]

# Kernels that are loaded, or are being compiled, by kernel, key and device.
_found: dict[tuple[int, Hashable, int], LoadedKernel | Future] = {}

# Locks that are held while a form is compiled, by kernel and key.
_compiling: dict[tuple[int, Hashable], Lock] = {}

_collected: ContextVar[Forms | None] = ContextVar("collected", default=None)
_at_first: ContextVar[Callable[[], None] | None] = ContextVar("at_first", default=None)


def loaded(form: Form, device: int) -> LoadedKernel:
    """Return the kernel of a form, which may have to be compiled, on the current device."""
    known = id(form.kernel), form.key, device
    kernel = _found.get(known)
    if type(kernel) is LoadedKernel:
        return kernel
    begin = _at_first.get()
    if kernel is None and begin is not None:
        begin()
        kernel = _found.get(known)
    new = result_of(kernel) if isinstance(kernel, Future) else kernel
    _found[known] = new = new or form.load(device)
    return new


def result_of(kernel: Future) -> LoadedKernel | None:
    """Return what a thread has compiled; None if it failed, or was cancelled as the process ends.

    A failure may be temporary (a GPU or a disk was full), so the launch itself tries again.
    """
    try:
        return kernel.result()
    except Exception:
        return None


@contextmanager
def rehearsal() -> Iterator[Forms]:
    """In this context no kernel is queued: the forms of all launches are collected in the result.

    Tensors are on the device ``"meta"``, where they have a shape, a type and no numbers.
    """
    forms: Forms = {}
    token = _collected.set(forms)
    try:
        yield forms
    finally:
        _collected.reset(token)


def collected() -> Forms | None:
    """Return the forms that were collected so far; None where kernels are queued."""
    return _collected.get()


def compile_together(forms: Forms, devices: Iterable[int]) -> None:
    """Have threads compile and load forms, the longest first, for the GPUs with these numbers."""
    longest_first = sorted(forms.items(), key=lambda item: -length_of(item[1].kernel))
    for device in devices:
        for key, form in longest_first:
            known = *key, device
            if known not in _found:
                _found[known] = compilers().submit(partial(form.load, device))


@contextmanager
def at_first(begin: Callable[[], None]) -> Iterator[None]:
    """In this context, call `begin` when a launch needs a kernel that is not being compiled yet."""
    token = _at_first.set(begin)
    try:
        yield
    finally:
        _at_first.reset(token)
