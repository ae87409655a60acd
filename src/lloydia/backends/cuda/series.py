"""Launches that are queued together, again and again, by one compiled call.

By way of Triton a launch takes the host twice as long as the driver needs for it.  So what a series
of launches hands to the driver is kept as numbers, and a small function, compiled when it is first
needed, hands it over.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from ctypes import CDLL, CFUNCTYPE, byref, c_char_p, c_int64, c_void_p, cast
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numpy.typing import NDArray

from lloydia.backends.cuda.launching import Launch

__all__ = ["HIDDEN", "Apart", "Series", "is_plain", "joined", "parameters", "series_of"]

# The driver's functions that launch kernels: without, and with all programs there at a time.
USUAL, COOPERATIVE = "cuLaunchKernel", "cuLaunchCooperativeKernel"
# What the driver is told of a launch: by which of its functions, the kernel, the programs along
# three axes, the threads of one, its shared memory, and which is the first of its parameters.
HEAD = 8
# Parameters are as long as this, or shorter and then at its beginning.
SLOT = 8
# Places that Triton adds to a kernel's parameters, for memory that plain ones do not need.
HIDDEN = 2
FLOATS = {"fp32": "<f", "fp64": "<d"}


class Series:
    """Some launches, as numbers.

    Parameters
    ----------
    heads : int64 ndarray of shape (m, HEAD)
    values : int64 ndarray
        The parameters of all, one after the other.
    kept : sequence
        What they are launched with stays while it is here.
    """

    __slots__ = "at", "heads", "kept", "places", "values"

    def __init__(self, heads: NDArray[np.int64], values: NDArray[np.int64], kept: Any) -> None:
        self.heads, self.values, self.kept = heads, values, kept
        # The driver is told where each parameter is.
        self.places = np.arange(0, SLOT * len(values), SLOT) + address(values)
        self.at = address(heads), address(self.places)

    def with_values(self, values: NDArray[np.int64], kept: Any) -> Series:
        """Return the same launches with other parameters."""
        return Series(self.heads, values, kept)

    def then(self, other: Series) -> Series:
        """Return these launches, and those of another series after them."""
        heads = np.concatenate([self.heads, other.heads])
        heads[len(self.heads) :, -1] += len(self.values)
        return Series(heads, np.concatenate([self.values, other.values]), (self.kept, other.kept))

    def queue(self, stream: int, times: int = 1) -> None:
        """Queue all of it so many times on the stream of this handle."""
        if len(self.heads) == 0:
            return
        failed = compiled()(*self.at, len(self.heads), stream, times)
        if failed:
            raise RuntimeError(f"The GPU's driver refused to launch a kernel: {reason(failed)}.")


class Apart(NamedTuple):
    """What is queued one by one: launches that want more than numbers, or several series."""

    parts: Sequence[Launch | Series | Apart]

    def queue(self, stream: int, times: int = 1) -> None:
        """Queue all of it so many times on the stream of this handle."""
        for _ in range(times):
            for part in self.parts:
                part.queue(stream)


def joined(first: Series | Apart, second: Series | Apart) -> Series | Apart:
    """Return launches, and others after them."""
    if isinstance(first, Series) and isinstance(second, Series):
        return first.then(second)
    return Apart([first, second])


def series_of(launches: Sequence[Launch]) -> Series | Apart:
    """Return some launches as a series."""
    if not all(map(is_plain, launches)):
        return Apart(launches)
    heads, values = [], []
    for launch in launches:
        compiled, grid = launch.compiled, launch.grid
        about = compiled.metadata
        cooperates = about.launch_cooperative_grid
        if min(grid) > 0:
            heads.append(
                (function(COOPERATIVE if cooperates else USUAL), compiled.function, *grid,
                 32 * about.num_warps, about.shared, len(values))
            )  # fmt: skip
        values += [number(launch.places[i], kind) for i, kind in parameters(launch)]
        values += [0] * HIDDEN
    kept = [launch.kept for launch in launches]
    table = np.array(heads, dtype=np.int64).reshape(-1, HEAD)
    return Series(table, np.array(values, dtype=np.int64), kept)


def is_plain(launch: Launch) -> bool:
    """Return whether numbers are all that a launch needs."""
    about = launch.compiled.metadata
    scratch = about.global_scratch_size or about.profile_scratch_size
    return not (scratch or about.launch_pdl or about.num_ctas != 1) and all(
        kind[0] in "*iu" or kind in FLOATS for _, kind in parameters(launch)
    )


def parameters(launch: Launch) -> list[tuple[int, str]]:
    """Return which arguments a kernel takes when it is launched, by number, and their types."""
    kinds = launch.compiled.src.signature.values()
    return [(i, kind) for i, kind in enumerate(kinds) if kind != "constexpr"]


def number(value: Any, kind: str) -> int:
    """Return the integer whose first bytes are those of a parameter."""
    if kind in FLOATS:
        return int.from_bytes(struct.pack(FLOATS[kind], value), "little", signed=True)
    return int(value or 0)


def address(array: NDArray) -> int:
    """Return where an array is."""
    return array.__array_interface__["data"][0]


# -- the driver ------------------------------------------------------------------------------------


@cache
def driver() -> CDLL:
    """Return the GPU's driver."""
    return CDLL("libcuda.so.1")


@cache
def function(name: str) -> int:
    """Return where a function of the driver is."""
    return cast(getattr(driver(), name), c_void_p).value or 0


def reason(failed: int) -> str:
    """Return what an error of the driver is called."""
    name = c_char_p()
    driver().cuGetErrorName(failed, byref(name))
    return f"{(name.value or b'an unknown error').decode()} ({failed})"


# -- the function that hands it over --------------------------------------------------------------


@cache
def compiled() -> Callable[..., int]:
    """Return a function of where heads and places are, how many heads, the stream, and how often.

    It returns the first error, 0 if there is none.  Python's lock is free meanwhile.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module())), machine)
    engine.finalize_object()
    out = CFUNCTYPE(c_int64, *[c_int64] * 5)(engine.get_function_address("queue"))
    # What it is compiled to stays as long as it does.
    out.engine = engine
    return out


def module() -> ir.Module:
    """Return the code of that function: addresses are integers, as processors have them."""
    number, short = ir.IntType(64), ir.IntType(32)
    launches = ir.FunctionType(
        short, [number, *[short] * 7, number, number, number]
    )  # a kernel, the axes of its grid and of its programs, memory, stream, parameters, nothing
    out = ir.Module("series")
    queue = ir.Function(out, ir.FunctionType(number, [number] * 5), "queue")
    heads, places, count, stream, times = queue.args
    begin, each, end = map(queue.append_basic_block, ("begin", "each", "end"))
    builder = ir.IRBuilder(begin)
    total = builder.mul(count, times)
    builder.cbranch(builder.icmp_signed(">", total, number(0)), each, end)
    builder.position_at_end(each)
    i = builder.phi(number)
    at = builder.add(heads, builder.mul(builder.urem(i, count), number(HEAD * 8)))
    head = [
        builder.load(builder.inttoptr(builder.add(at, number(8 * j)), number.as_pointer()))
        for j in range(HEAD)
    ]
    grid, threads, memory = head[2:5], head[5], head[6]
    shape = [builder.trunc(x, short) for x in (*grid, threads)]
    first = builder.add(places, builder.mul(head[7], number(8)))
    failed = builder.call(
        builder.inttoptr(head[0], launches.as_pointer()),
        [head[1], *shape, short(1), short(1), builder.trunc(memory, short), stream, first,
         number(0)],
    )  # fmt: skip
    following = builder.add(i, number(1))
    fine = builder.icmp_signed("==", failed, short(0))
    builder.cbranch(builder.and_(fine, builder.icmp_signed("<", following, total)), each, end)
    i.add_incoming(number(0), begin)
    i.add_incoming(following, each)
    builder.position_at_end(end)
    found = builder.phi(short)
    found.add_incoming(short(0), begin)
    found.add_incoming(failed, each)
    builder.ret(builder.zext(found, number))
    return out
