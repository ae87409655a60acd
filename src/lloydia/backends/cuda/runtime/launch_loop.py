"""A compiled loop over ``cuLaunchKernelEx``, the driver's function that launches a kernel.

A launch from Python takes the host twice as long as the driver needs for it.  This loop reads
the arguments of many launches from two arrays (:mod:`launch_configs`) and calls the driver for
each, without Python in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, c_int64
from functools import cache

from llvmlite import binding, ir

__all__ = ["FIELDS", "compiled"]

# Numbers of a launch: its attribute, the kernel, the programs along three axes, the threads of a
# program, its shared memory, and the position of its first parameter.
FIELDS = 8
# Bytes of a slot, at the beginning of which a parameter lies.
SLOT = 8

LONG, SHORT = ir.IntType(64), ir.IntType(32)
# The driver's function takes a CUlaunchConfig, a kernel, the addresses of its parameters, and null.
TAKES = ir.FunctionType(SHORT, [LONG] * 4)
# A CUlaunchConfig has, in 32 bits each, the axes of the grid and of its programs, shared memory and
# a gap; then, in 64 bits, the stream, the address of its CUlaunchAttributes, their number and a
# gap.
# The one attribute has its name, a gap, and the value 1.  These are the lengths of both.
CONFIG, ATTRIBUTE = 7, 9


@cache
def compiled() -> Callable[..., int]:
    """Return the loop, compiled when it is first needed.

    It takes the driver's function, the launches and their number, the parameters and their number,
    the stream, and how often to launch all.  It returns the first error, or 0.  Python's lock is
    free meanwhile.
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module())), machine)
    engine.finalize_object()
    out = CFUNCTYPE(c_int64, *[c_int64] * 7)(engine.get_function_address("queue"))
    # The machine code lives as long as the function.
    out.engine = engine  # type: ignore[attr-defined]
    return out


def module() -> ir.Module:
    """Return the code of the loop."""
    out = ir.Module("launch_loop")
    queue = ir.Function(out, ir.FunctionType(LONG, [LONG] * 7), "queue")
    launch, configs, count, values, n_values, stream, times = queue.args
    builder = ir.IRBuilder(queue.append_basic_block("begin"))
    # The driver takes the address of each parameter.
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
        at = builder.mul(builder.urem(i, count), LONG(FIELDS))
        which, kernel, *shape, first = (
            builder.load(pointer(builder, configs, builder.add(at, LONG(j)))) for j in range(FIELDS)
        )
        builder.store(which, pointer(builder, attribute, LONG(0)))
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
    """Return this address as a pointer."""
    return builder.inttoptr(number_at(builder, base, i), LONG.as_pointer())


@contextmanager
def each(builder: ir.IRBuilder, count: ir.Value) -> Iterator[ir.Value]:
    """Repeat the code that is built in this context for each i from 0 to `count`, exclusive."""
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
