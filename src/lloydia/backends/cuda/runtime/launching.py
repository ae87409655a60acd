"""How kernels are written and launched.

Kernels are written in Triton.  With ``TRITON_INTERPRET=1`` they run in Triton's interpreter, on the
host and on tensors in its memory: the same code, slowly, for tests without a GPU.  Programs then
run one after the other.  One kernel also exists in Gluon (:mod:`matmul.hopper_scan`), which has no
interpreter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from lloydia.backends.cuda.runtime.forms import Form, collected, loaded
from lloydia.backends.cuda.runtime.kernel_cache import make_writable
from lloydia.backends.cuda.runtime.loaded_kernels import LoadedKernel

__all__ = [
    "COMPILED",
    "EXACT",
    "INTERPRETED",
    "Launch",
    "ceil_div",
    "given",
    "launch",
    "next_power",
    "note",
    "noting",
    "number_of",
    "percent_of",
    "place",
    "processors",
    "shared_memory",
    "stream_of",
    "where_given",
]

INTERPRETED = bool(triton.knobs.runtime.interpret)
# Kernels read this at compile time.
COMPILED = tl.constexpr(not INTERPRETED)

if not INTERPRETED:
    # At import, before any kernel is compiled; only work on a GPU imports this module.
    make_writable()

# Launch options of kernels that compute canonical numbers: no product may be fused with a sum.
EXACT = {"enable_fp_fusion": False}


def place(device: str) -> torch.device:
    """Return the device of tensors for ``"cuda"`` or ``"cuda:N"``; the host where interpreted."""
    if INTERPRETED:
        return torch.device("cpu")
    number = number_of(device)
    return numbered(torch.cuda.current_device() if number is None else number)


@cache
def number_of(device: str) -> int | None:
    """Return N of ``"cuda:N"``, None of ``"cuda"``."""
    return torch.device(device).index


@cache
def numbered(number: int) -> torch.device:
    """Return the GPU of a number."""
    return torch.device("cuda", number)


@cache
def processors(device: torch.device) -> int:
    """Return the number of multiprocessors; a persistent launch has at most a multiple of it."""
    if device.type == "cpu" or INTERPRETED:
        return 1
    return properties_of(device).multi_processor_count


@cache
def shared_memory(device: torch.device) -> int:
    """Return the bytes of shared memory of a multiprocessor."""
    if device.type == "cpu" or INTERPRETED:
        return 1 << 20
    return properties_of(device).shared_memory_per_multiprocessor


def properties_of(device: torch.device) -> Any:
    """Return PyTorch's properties of a GPU; for the device "meta", those of the current GPU."""
    return torch.cuda.get_device_properties(None if device.type == "meta" else device)


def percent_of(shared: int, device: torch.device) -> int:
    """Return bytes of shared memory in percent of what a multiprocessor has, at most 100."""
    return min(100, ceil_div(100 * shared, shared_memory(device)))


def ceil_div(a: int, b: int) -> int:
    """Return the least number of steps of `b` that reach `a`."""
    return -(-a // b)


def next_power(n: int, least: int = 1) -> int:
    """Return the least power of two of at least `n` and `least`."""
    return max(least, 1 << (n - 1).bit_length())


def given(x: torch.Tensor | None, other: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Return a tensor and 1; where there is none, another tensor of its type, and 0.

    With these two arguments a kernel has one form for both cases; None would need another form.
    """
    return (other, 0) if x is None else (x, 1)


@triton.jit
def where_given(there, mask):
    """Return a mask that loads nothing if `there`, the integer of :func:`given`, is 0."""
    return mask & (tl.zeros(mask.shape, tl.int32) < there)


_noted: ContextVar[list[Launch] | None] = ContextVar("noted", default=None)


class Launch(NamedTuple):
    """A kernel launch that was queued, and may be queued again.

    Attributes
    ----------
    kernel : LoadedKernel
    grid : tuple of three int
    places : sequence
        Its arguments; a tensor is given by its address.
    arguments : sequence
        The arguments as they were passed, which keeps the tensors alive.
    """

    kernel: LoadedKernel
    grid: tuple[int, int, int]
    places: Sequence
    arguments: Sequence

    def queue(self, stream: int) -> None:
        """Queue it on the stream with this handle."""
        self.kernel.queue(self.grid, stream, self.places)


# What Triton specialises integers for, besides their type: being 1, or being a multiple of 16.
IS_ONE, MULTIPLE_OF_16, PLAIN = 1, 2, 3
INT32_LIMIT = 2**31


SAME = "do_not_specialize", "do_not_specialize_on_alignment"
# By kernel, known by its identity: hashing one reads its source.
_same_forms: dict[int, tuple[tuple[bool, bool], ...]] = {}
# Kernels that were launched.  While this holds them, no other object has their identities.
_launched: list[Any] = []


def same_forms(kernel: Any) -> tuple[tuple[bool, bool], ...]:
    """Return for each argument whether all integers, and all addresses, have one form."""
    found = _same_forms.get(id(kernel))
    if found is None:
        if isinstance(kernel, JITFunction):
            some, others = ([getattr(p, option) for p in kernel.params] for option in SAME)
        else:  # Interpreted, it is not compiled, but has the same forms.
            names = [kernel.kwargs[option] or () for option in SAME]
            some, others = ([name in chosen for name in kernel.arg_names] for chosen in names)
        found = _same_forms[id(kernel)] = tuple(zip(some, others))
        _launched.append(kernel)
    return found


def launch(
    kernel: Any,
    grid: tuple[int, ...],
    *args: Any,
    key: Hashable = None,
    shared: int | None = None,
    **options: Any,
) -> None:
    """Queue a kernel; its compiled form is looked up by the kinds of its arguments, or by a key.

    Triton's own launch does the same in twice the time.  In a rehearsal the form is only collected.

    Parameters
    ----------
    kernel : triton kernel
    grid : tuple of int
    args, options
        The first is a tensor on the current device.  Compile-time constants and launch options are
        passed by name.
    key : hashable, optional
        Determines the compiled form; then the kinds of the arguments are not looked at.  Addresses
        that it does not determine are multiples of 16 bytes.
    shared : int, optional
        About how many bytes of shared memory suffice on a multiprocessor, so that the rest is L1
        cache; it depends on the kernel and the options only.  Without it the driver decides, and
        may leave little cache to a kernel that needs it.

    Raises
    ------
    RuntimeError
        The current device is another one.
    """
    percent = None if shared is None else percent_of(shared, args[0].device)
    form, places = form_of(kernel, key, args, options, percent)
    forms = collected()
    if forms is not None:
        forms[id(kernel), form.key] = form
        return
    if INTERPRETED:
        kernel[(*grid, 1, 1)[:3]](*args, **options)
        return
    device = torch.cuda.current_device()
    if args[0].device.index != device:
        # The kernel could reach them, but would not wait for the kernels that write them.
        raise RuntimeError(
            f"The current device is cuda:{device}, and the kernel's arguments are on "
            f"{args[0].device}: make that the current device first."
        )
    constants = [options[name] for name in kernel.arg_names[len(args) :]]
    one = Launch(loaded(form, device), (*grid, 1, 1)[:3], (*places, *constants), args)
    one.queue(stream_of(device))
    note([one])


def form_of(
    kernel: Any, key: Hashable, args: tuple, options: dict, percent: int | None
) -> tuple[Form, list]:
    """Return the form of a kernel that a launch needs, and its arguments, tensors by address."""
    if key is not None:
        places = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
        return Form(kernel, key, args, options, percent), places
    # One loop, inlined: separate functions would take as long as the launch itself.
    places, kinds = [], [*options.values()]
    for argument, (any_integer, any_address) in zip(args, same_forms(kernel)):
        place, kind = argument, type(argument)
        if isinstance(argument, torch.Tensor):
            place, kind = argument.data_ptr(), argument.dtype
            if place % 16 and not any_address:
                # Another kind: not a multiple of 16 bytes.
                kind = str(kind)
        elif kind is int:
            kind = IS_ONE if argument == 1 else PLAIN if argument % 16 else MULTIPLE_OF_16
            if any_integer:
                kind = PLAIN
            if not -INT32_LIMIT <= argument < INT32_LIMIT:
                # It needs 64 bits.
                kind = -kind
        places.append(place)
        kinds.append(kind)
    return Form(kernel, tuple(kinds), args, options, percent), places


@contextmanager
def noting() -> Iterator[list[Launch]]:
    """In this context launches are noted in the result; none where kernels are interpreted."""
    launches: list[Launch] = []
    token = _noted.set(launches)
    try:
        yield launches
    finally:
        _noted.reset(token)


def note(launches: list[Launch]) -> None:
    """Add launches to the result of :func:`noting`, if that is active."""
    so_far = _noted.get()
    if so_far is not None:
        so_far += launches


def stream_of(device: int) -> int:
    """Return the handle of the current stream of the GPU with this number."""
    return driver.active.get_current_stream(device)
