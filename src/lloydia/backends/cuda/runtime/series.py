"""Launches that are queued together, again and again, by one compiled call.

By way of Triton a launch takes the host twice as long as the driver needs for it.  So what a series
of launches hands to the driver is kept as numbers, and a small function, compiled when it is first
needed, hands it over.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import CFUNCTYPE, addressof, c_int64
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numpy.typing import NDArray

from lloydia.backends.cuda import options
from lloydia.backends.cuda.runtime.driver import enter, function, refuse
from lloydia.backends.cuda.runtime.launching import Launch

__all__ = ["HIDDEN", "Apart", "Heads", "Series", "is_plain", "joined", "parameters", "series_of"]

# The driver's function that launches kernels.
LAUNCH = "cuLaunchKernelEx"
# How it does so, by the CUlaunchAttribute: when what was launched before has ended (IGNORE); that,
# and with all programs there at a time (COOPERATIVE); as soon as there is room, for programs that
# wait by themselves (PROGRAMMATIC_STREAM_SERIALIZATION).
USUAL, COOPERATIVE, EARLY = 0, 2, 6
# What such programs wait by; see
# :func:`lloydia.backends.cuda.device_functions.run_state.wait_for_previous_kernel`.
WAIT = "griddepcontrol.wait"
# What the driver is told of a launch: how, the kernel, the programs along three axes, the threads
# of one, its shared memory, and which is the first of its parameters.
HEAD = 8
# Parameters are as long as this, or shorter and then at its beginning.
SLOT = 8
# Places that Triton adds to a kernel's parameters, for memory that plain ones do not need.
HIDDEN = 2
FLOATS = {"fp32": "<f", "fp64": "<d"}


class Heads:
    """What the driver is told of launches, but for parameters: int64 of shape (count, HEAD)."""

    __slots__ = "at", "count", "table"

    def __init__(self, table: NDArray[np.int64]) -> None:
        self.table, self.count, self.at = table, len(table), address(table)


class Series:
    """Some launches, as numbers.

    Parameters
    ----------
    heads : Heads
    values : int64 ndarray
        The parameters of all, one after the other.
    kept : sequence
        What they are launched with stays while it is here.
    at : int, optional
        Where the parameters are, if that is known.
    """

    __slots__ = "at", "heads", "kept", "values"

    def __init__(
        self, heads: Heads, values: NDArray[np.int64], kept: Any, at: int | None = None
    ) -> None:
        self.heads, self.values, self.kept = heads, values, kept
        self.at = address(values) if at is None else at

    def with_values(self, values: NDArray[np.int64], kept: Any) -> Series:
        """Return the same launches with other parameters."""
        return Series(self.heads, values, kept)

    def keeping(self, kept: Any) -> Series:
        """Return the same launches with the same parameters, while which other things stay."""
        return Series(self.heads, self.values, kept, self.at)

    def then(self, other: Series) -> Series:
        """Return these launches, and those of another series after them."""
        table = np.concatenate([self.heads.table, other.heads.table])
        table[len(self.heads.table) :, -1] += len(self.values)
        values = np.concatenate([self.values, other.values])
        return Series(Heads(table), values, (self.kept, other.kept))

    def some(self, heads: Heads) -> Series:
        """Return some of these launches, what the driver is told of which is known."""
        return Series(heads, self.values, self.kept, self.at)

    def queue(self, stream: int, times: int = 1) -> None:
        """Queue all of it so many times on the stream of this handle."""
        heads = self.heads
        if heads.count == 0:
            return
        enter()
        failed = compiled()(
            function(LAUNCH), heads.at, heads.count, self.at, len(self.values), stream, times
        )
        refuse(failed, "launch a kernel")


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
        if min(grid) > 0:
            heads.append(
                (how(compiled), compiled.function, *grid, 32 * about.num_warps, about.shared,
                 len(values))
            )  # fmt: skip
        values += [number(launch.places[i], kind) for i, kind in parameters(launch)]
        values += [0] * HIDDEN
    kept = [launch.kept for launch in launches]
    table = np.array(heads, dtype=np.int64).reshape(-1, HEAD)
    return Series(Heads(table), np.array(values, dtype=np.int64), kept)


def how(compiled: Any) -> int:
    """Return how a kernel is launched."""
    if compiled.metadata.launch_cooperative_grid:
        return COOPERATIVE
    early = options.is_on("early_launch") and WAIT in compiled.asm["ptx"]
    return EARLY if early else USUAL


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


def address(array: NDArray[np.int64]) -> int:
    """Return where an array is."""
    return addressof(c_int64.from_buffer(array)) if len(array) else 0


# -- the function that hands it over --------------------------------------------------------------


@cache
def compiled() -> Callable[..., int]:
    """Return a function that launches.

    It takes the driver's function, heads and how many, parameters and how many, the stream, and how
    often; it returns the first error, 0 if there is none.  Python's lock is free meanwhile.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module())), machine)
    engine.finalize_object()
    out = CFUNCTYPE(c_int64, *[c_int64] * 7)(engine.get_function_address("queue"))
    # What it is compiled to stays as long as it does.
    out.engine = engine  # type: ignore[attr-defined]
    return out


LONG, SHORT = ir.IntType(64), ir.IntType(32)
# What the driver's function takes: a CUlaunchConfig, a kernel, where its parameters are, and
# nothing.  Addresses are integers, as processors have them.
TAKES = ir.FunctionType(SHORT, [LONG] * 4)
# A CUlaunchConfig, in 32 bits each: the axes of the grid and of its programs, shared memory and a
# gap; in 64: the stream, where its CUlaunchAttributes are; how many, and a gap.  Of the one
# attribute: which, a gap, and that it is so; in all they are this long.
CONFIG, ATTRIBUTE = 7, 9


def module() -> ir.Module:
    """Return the code of that function."""
    out = ir.Module("series")
    queue = ir.Function(out, ir.FunctionType(LONG, [LONG] * 7), "queue")
    launch, heads, count, values, n_values, stream, times = queue.args
    builder = ir.IRBuilder(queue.append_basic_block("begin"))
    # The driver wants to know where each parameter is.
    places, config, attribute = (
        builder.ptrtoint(builder.alloca(LONG, size), LONG)
        for size in (n_values, LONG(CONFIG), LONG(ATTRIBUTE))
    )
    with each(builder, n_values) as i:
        builder.store(number_at(builder, values, i), pointer(builder, places, i))
    one = LONG(1)
    for base, number, value in (
        (config, 4, stream), (config, 5, attribute), (config, 6, one), (attribute, 1, one)
    ):  # fmt: skip
        builder.store(value, pointer(builder, base, LONG(number)))
    with each(builder, builder.mul(count, times)) as i:
        at = builder.mul(builder.urem(i, count), LONG(HEAD))
        how, kernel, *shape, first = (
            builder.load(pointer(builder, heads, builder.add(at, LONG(j)))) for j in range(HEAD)
        )
        builder.store(how, pointer(builder, attribute, LONG(0)))
        x, y, z, threads, memory = shape
        for number, (low, high) in enumerate(((x, y), (z, threads), (one, one), (memory, LONG(0)))):
            both = builder.or_(low, builder.shl(high, LONG(32)))
            builder.store(both, pointer(builder, config, LONG(number)))
        failed = builder.call(
            builder.inttoptr(launch, TAKES.as_pointer()),
            [config, kernel, number_at(builder, places, first), LONG(0)],
        )
        with builder.if_then(builder.icmp_signed("!=", failed, SHORT(0))):
            builder.ret(builder.zext(failed, LONG))
    builder.ret(LONG(0))
    return out


def number_at(builder: ir.IRBuilder, base: ir.Value, i: ir.Value) -> ir.Value:
    """Return the address of number i of those that begin at `base`."""
    return builder.add(base, builder.mul(i, LONG(SLOT)))


def pointer(builder: ir.IRBuilder, base: ir.Value, i: ir.Value) -> ir.Value:
    """Return it as a pointer."""
    return builder.inttoptr(number_at(builder, base, i), LONG.as_pointer())


@contextmanager
def each(builder: ir.IRBuilder, count: ir.Value) -> Iterator[ir.Value]:
    """Have what is built in this context done for each i from 0 to `count`, exclusive."""
    before = builder.block
    body, after = (builder.append_basic_block(name) for name in ("body", "after"))
    builder.cbranch(builder.icmp_signed(">", count, LONG(0)), body, after)
    builder.position_at_end(body)
    i = builder.phi(LONG)
    i.add_incoming(LONG(0), before)
    yield i
    following = builder.add(i, LONG(1))
    i.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    builder.position_at_end(after)
