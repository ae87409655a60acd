"""Reductions of rows of numbers in shared memory, as T has them.

A block brings two numbers a thread into shared memory and folds them in the middle, a level after
the other with a barrier between, and writes the result in place of the first of its numbers.  Two
more kernels move the blocks' results together, through a second array, and the same begins again
until one number a row is left: log_2b n rounds of three launches with blocks of b threads, where a
tree in global memory takes log_2 n launches and writes every level.

The rows lie along the grid's first axis, which has room for 2^31; in T they lie along the second,
so that its shared-memory solvers take 65,535 points at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lloydia.ladder.device import ceil_div, cuda

__all__ = [
    "FlagFold",
    "Fold",
    "Gathering",
    "LargestFold",
    "fold_largest",
    "fold_sum",
    "in_block",
    "rounds",
]


def rounds(m: int, block: int) -> list[tuple[int, int]]:
    """Return how many numbers each round folds, and in how many blocks; at least one round."""
    found = [(m, ceil_div(m, 2 * block))]
    while found[-1][1] > 1:
        m = found[-1][1]
        found.append((m, ceil_div(m, 2 * block)))
    return found


class Gathering:
    """Moves the results of all blocks of a round together.

    Parameters
    ----------
    arrays : device arrays of shape (fields, rows, m)
        Moved by one launch together: one array, or two.
    block : int
    """

    def __init__(self, *arrays: Any, block: int) -> None:
        fields = [array.shape for array in arrays]
        width = ceil_div(fields[0][2], 2 * block)
        self.block, self.arrays = block, arrays
        self.spare = tuple(
            cuda.device_array((*shape[:2], width), array.dtype)
            for shape, array in zip(fields, arrays)
        )
        self._kernel = _move if len(arrays) == 1 else _move_two

    def queue(self, parts: int) -> None:
        """Queue the moves to and from the second array."""
        grid: Any = self.arrays[0].shape[1], ceil_div(parts, self.block)
        away = [each for pair in zip(self.arrays, self.spare) for each in pair]
        back = [each for pair in zip(self.spare, self.arrays) for each in pair]
        self._kernel[grid, self.block](*away, parts, 2 * self.block)
        self._kernel[grid, self.block](*back, parts, 1)


class Fold:
    """Rows of numbers, and what leaves the sum or the largest of a row in its first place.

    Parameters
    ----------
    kernel : `fold_sum` or `fold_largest`
    numbers : device array of shape (1, rows, m)
    block : int
    """

    def __init__(self, kernel: Any, numbers: Any, block: int) -> None:
        self.kernel, self.numbers, self.block = kernel, numbers, block
        self.gathering = Gathering(numbers, block=block)

    def queue(self) -> None:
        """Queue all rounds; a row of one number is left as it is."""
        _, rows, width = self.numbers.shape
        shared = 2 * self.block * self.numbers.dtype.itemsize
        for m, parts in rounds(width, self.block) if width > 1 else ():
            self.kernel[(rows, parts), self.block, 0, shared](self.numbers, m)
            self.gathering.queue(parts)


class FlagFold:
    """Counts flags of points.

    Parameters
    ----------
    n, block : int

    Attributes
    ----------
    flags : device array of shape (n,), int32
        0 or 1; a count leaves other numbers in it.
    """

    def __init__(self, n: int, block: int) -> None:
        self.flags = cuda.device_array(n, np.int32)
        self._fold = Fold(fold_sum, self.flags.reshape(1, 1, n), block)
        self._first = self.flags[:1]

    def count(self) -> int:
        """Return how many flags are 1."""
        self._fold.queue()
        return int(self._first.copy_to_host()[0])


class LargestFold:
    """The largest of some numbers.

    Parameters
    ----------
    numbers : device array of shape (m,)
    block : int

    Attributes
    ----------
    largest : device array of shape (1,)
    """

    def __init__(self, numbers: Any, block: int) -> None:
        self.numbers = numbers
        self.folded = cuda.device_array(len(numbers), numbers.dtype)
        self._fold = Fold(fold_largest, self.folded.reshape(1, 1, len(numbers)), block)
        self.largest = self.folded[:1]

    def find(self) -> None:
        """Queue what finds the largest."""
        self.folded.copy_to_device(self.numbers)
        self._fold.queue()


@cuda.jit(device=True)
def in_block(m):
    """Return where this block's part of m numbers begins, and how many it has."""
    begin = 2 * cuda.blockDim.x * cuda.blockIdx.y
    return begin, min(2 * cuda.blockDim.x, m - begin)


@cuda.jit(device=True)
def _plus(a, b):
    return a + b


@cuda.jit(device=True)
def _larger(a, b):
    return max(a, b)


def _folding(combine: Callable) -> Any:
    """Return a kernel that folds this block's part of the first m numbers of a row."""

    @cuda.jit
    def fold(numbers, m):
        part = cuda.shared.array(0, numbers.dtype)
        row, t = cuda.blockIdx.x, cuda.threadIdx.x
        begin, left = in_block(m)
        for e in range(t, left, cuda.blockDim.x):
            part[e] = numbers[0, row, begin + e]
        cuda.syncthreads()
        while left > 1:
            if t < left // 2:
                part[t] = combine(part[t], part[left - 1 - t])
            left = (left + 1) // 2
            cuda.syncthreads()
        if t == 0:
            numbers[0, row, begin] = part[0]

    return fold


fold_sum, fold_largest = _folding(_plus), _folding(_larger)


@cuda.jit
def _move(source, target, parts, stride):
    """Move every so many numbers of the source's rows to the beginning of the target's."""
    row, p = cuda.blockIdx.x, cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    if p < parts:
        for f in range(source.shape[0]):
            target[f, row, p] = source[f, row, p * stride]


@cuda.jit
def _move_two(source, target, second_source, second_target, parts, stride):
    """Move two arrays' numbers."""
    row, p = cuda.blockIdx.x, cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    if p < parts:
        for f in range(source.shape[0]):
            target[f, row, p] = source[f, row, p * stride]
        for f in range(second_source.shape[0]):
            second_target[f, row, p] = second_source[f, row, p * stride]
