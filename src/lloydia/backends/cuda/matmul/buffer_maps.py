"""What the launches of a run depend on: the start, an assignment, an update, an iteration."""

from __future__ import annotations

from collections.abc import Callable

from lloydia.backends.cuda.matmul.memory import TensorMemory
from lloydia.backends.cuda.matmul.starting import Start
from lloydia.backends.cuda.runtime.relocation import BufferMap, Owner, Scratch

__all__ = ["iteration_buffers", "scan_buffers", "start_buffers", "update_buffers"]


def start_buffers(memory: TensorMemory, start: Start) -> BufferMap:
    """Return what the launch of a start depends on; whether there is a limit does not matter."""
    rows, (centers, bounds) = memory.rows, start
    key = (
        "start", rows.n_samples, memory.shape, memory.n_limbs, rows.wide, centers.dtype,
        centers.data_ptr() % 16, bounds is None, rows.start_limit_bits,
    )  # fmt: skip
    parts = [memory.current, memory.labels, memory.arena.whole]
    return BufferMap(key, [*parts, *(x for x in start if x is not None)])


def scan_buffers(memory: TensorMemory) -> BufferMap:
    """Return what the launches of an assignment depend on."""
    rows = memory.rows
    return BufferMap.of(
        "scan", rows.X, rows.fp16_rows, memory,
        scratch=lambda: memory.scan.memory, zeros_address=memory.arena.address("scan"),
    )  # fmt: skip


def update_buffers(memory: TensorMemory) -> BufferMap:
    """Return what the launches of an update depend on; waits for the grid."""
    return _adding(memory, "update", scratch=lambda: memory.cluster_sums.memory(memory.rows))


def iteration_buffers(memory: TensorMemory) -> BufferMap:
    """Return what the launches of an iteration depend on; waits for the grid."""

    def scratch() -> Scratch:
        every, zeros = memory.scan.memory
        more, other_zeros = memory.cluster_sums.memory(memory.rows)
        return [*every, *more], [*zeros, *other_zeros]

    return _adding(memory, "iteration", memory.rows.fp16_rows, scratch=scratch)


def _adding(
    memory: TensorMemory, work: str, *owners: Owner, scratch: Callable[[], Scratch]
) -> BufferMap:
    """Return what the launches of work that adds rows up depend on."""
    rows, fixed_point_grid = memory.rows, memory.rows.fixed_point_grid
    buffer_map = BufferMap.of(
        work, rows.X, fixed_point_grid, memory, *owners,
        scratch=scratch, zeros_address=memory.arena.address("update"),
    )  # fmt: skip
    # The arena has no room for more limbs, or fewer: both are in the key.
    outside = fixed_point_grid.grid.n_limbs != memory.n_limbs
    return buffer_map.with_buffers(memory.sums) if outside else buffer_map
