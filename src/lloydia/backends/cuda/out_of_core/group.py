"""Rows that do not fit on a GPU: some blocks stay there, the others are sent in every pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.multi_gpu.part import CUDAPart
from lloydia.backends.cuda.out_of_core.blocks import Block, Shared
from lloydia.backends.cuda.out_of_core.listed import step_listed
from lloydia.backends.cuda.out_of_core.room import Division, Room
from lloydia.backends.cuda.out_of_core.sending import Array, Sender
from lloydia.backends.cuda.run_setup import bytes_of_clusters
from lloydia.backends.cuda.runtime.devices import free_bytes
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.runtime.own_device import current
from lloydia.backends.part import Step
from lloydia.backends.passes import Passes
from lloydia.backends.run_settings import RunSettings
from lloydia.data.chunks.memory import spell
from lloydia.data.chunks.reader import Reader
from lloydia.spelling import option

__all__ = ["OutOfCore", "Plan", "out_of_core"]

ALL = 1 << 62


@dataclass(frozen=True)
class Plan:
    """Which rows stay on a GPU, and what is sent to it.

    Attributes
    ----------
    name : str
        The GPU.
    room : Room
    total : int
        Bytes of all rows, as they are given.
    sizes : sequence of int
        The bytes of each block, as it is sent.
    passes, iterations : Division
        What stays in passes over the rows, and in the iterations of a run after the first.
    """

    name: str
    room: Room
    total: int
    sizes: Sequence[int]
    passes: Division
    iterations: Division

    def sent(self, division: Division) -> tuple[int, int]:
        """Return the blocks that are sent in full, and their bytes."""
        resident = division.rows | division.fp16_rows
        sent = [size for p, size in enumerate(self.sizes) if p not in resident]
        return len(sent), sum(sent)

    def __str__(self) -> str:
        room = self.room
        count, size = self.sent(self.passes)
        text = (
            f"out of core on {self.name}: {spell(self.total)} of rows, {spell(room.free)} free "
            f"({spell(room.state)} what is kept of each row, {spell(room.in_flight)} blocks on "
            f"their way): {len(self.passes.rows):,} of {room.n_blocks:,} blocks of {room.rows:,} "
            f"rows stay on the GPU, {count:,} ({spell(size)}) are sent in every pass"
        )
        if not self.iterations.fp16_rows:
            return text
        count, size = self.sent(self.iterations)
        rest = f", {count:,} ({spell(size)}) are sent" if count else ""
        return (
            f"{text}; from the second iteration of a run on {len(self.iterations.rows):,} stay, "
            f"{len(self.iterations.fp16_rows):,} stay in half precision (of these, the rows that "
            f"change or are ambiguous are sent){rest}"
        )


class OutOfCore(Passes):
    """The blocks of a GPU; see :class:`lloydia.backends.group.Group`.

    Parameters
    ----------
    host : Array or Reader
    weights : ndarray of shape (n,), float64, or None
    name : str
        The GPU.
    room : Room

    Attributes
    ----------
    parts : list of CUDAPart
    runs : list of Block
        The runs of the parts, and their rows.

    Raises
    ------
    DataError
        A value is not finite.
    """

    parts: list[CUDAPart[Block]]
    runs: list[Block]

    def __init__(
        self, host: Array | Reader, weights: NDArray | None, name: str, room: Room
    ) -> None:
        super().__init__(host)
        self.name, self.device, self.room = name, place(name), room
        self.few_rows_device = name
        self.shared, self.sender = Shared(self.device), Sender(host, self.device)
        with current(self.device):
            self._read(weights)

    def _read(self, weights: NDArray | None) -> None:
        """Read all rows, and keep as many as fit."""
        edges, left = list(pairwise(self.host.edges.tolist())), self.room.left
        self.parts, self.runs = [], []
        for p, X in self.blocks(range(len(edges))):
            own = None if weights is None else weights[slice(*edges[p])]
            block = Block(X, own, self.shared)
            self.runs.append(block)
            self.parts.append(CUDAPart(block.data, block, stays=False))
            self.sender.types[p] = block.transfer_dtype
            if block.n_bytes <= left:
                self.sender.resident[p] = X.to(block.transfer_dtype, copy=True)
                left -= block.n_bytes

    @property
    def plan(self) -> Plan:
        total = self.n_samples * self.n_features * self.dtype.itemsize
        sizes = [block.n_bytes for block in self.runs]
        divisions = (self._divided(halving, 0) for halving in (False, True))
        return Plan(self.name, self.room, total, sizes, *divisions)

    def bytes_of_clusters(self, k: int, n_runs: int = 2) -> int:
        """Return the bytes of k clusters, besides the blocks.

        In a run two half-precision copies may be in progress, each with its own centres.
        """
        first = self.parts[0]
        return bytes_of_clusters(first.data, k) * (n_runs if first.data.kind.stores_fp16 else 1)

    def _divided(self, halving: bool, clusters: int) -> Division:
        """Decide which rows stay; `halving` is whether half-precision copies may be used.

        Copies help where few rows can be gathered from the host, and where rows take more memory.
        """
        fp16_rows = [block.n_bytes_fp16 for block in self.runs]
        rows = [block.n_bytes for block in self.runs]
        if not halving or not isinstance(self.host, Array) or sum(fp16_rows) >= sum(rows):
            fp16_rows = []
        return self.room.divide(rows, fp16_rows, clusters)

    def _divide(self, halving: bool, k: int, n_runs: int = 2) -> Division:
        """Set which rows and half-precision copies stay once they arrive, besides k clusters.

        Raises
        ------
        MemoryError
            There is no room for the clusters and two blocks.
        """
        clusters = self.bytes_of_clusters(k, n_runs) if k else 0
        found = self._divided(halving, clusters)
        if found.left < 0:
            raise MemoryError(
                f"{clusters:,} bytes of GPU memory are needed for {k:,} clusters of "
                f"{self.n_features:,} features, and {self.room.left:,} are left on {self.name} "
                f"besides rows on their way: free some, or use {option('device', 'cpu')}."
            )
        there = len(self.sender.resident)
        self.sender.keep(found.rows)
        for p, block in enumerate(self.runs):
            block.keep_fp16_rows(p in found.fp16_rows)
        if len(self.sender.resident) < there and self.device.type == "cuda":
            # New blocks have other sizes: in the memory of released ones they would leave gaps.
            torch.cuda.empty_cache()
        return found

    def blocks(self, wanted: Iterable[int]) -> Iterator[tuple[int, torch.Tensor]]:
        return self.sender.blocks(wanted)

    def attach(self, p: int, rows: torch.Tensor | None) -> None:
        self.runs[p].attach(rows)

    # -- questions -------------------------------------------------------------------------------

    def begin(self, method: str, *arguments: Any) -> None:
        # The memory of the last run is released.
        for block in self.runs:
            block.forget_run()
        self.shared.forget_run()
        if method == "seed_start":
            self._divide(False, 0)
            return
        centers = arguments[0].centers if method == "start" else arguments[0]
        found = self._divide(method == "start", len(centers))
        self.shared.begin(self.parts[0].data, centers, 2 if found.fp16_rows else 1)
        if method == "classify":
            for part in self.parts:
                part.start(RunSettings(centers, "lloyd"))

    def each(self, method: str, *arguments: Any) -> list[Any]:
        with current(self.device):
            if method == "conclude":
                self._use(arguments[0])
            if method == "seed_extend_by":
                arguments = self._make_room(arguments[0])
            found = super().each(method, *arguments)
            if method in ("conclude", "classify"):
                self.shared.end_pass()
            return found

    def _make_room(self, centers: NDArray) -> tuple[torch.Tensor, int]:
        """Copy new seeds to the device; return them, and to how many at a time rows are assigned.

        As many as there is room for.
        """
        most = self.room.left * len(centers) // self.bytes_of_clusters(len(centers), n_runs=1)
        count = min(max(most, 1), len(centers))
        self._divide(False, count, n_runs=1)
        return torch.from_numpy(np.ascontiguousarray(centers)).to(self.device), count

    def _use(self, centers: NDArray) -> None:
        """Let all blocks assign their rows to these centres."""
        self.shared.run.memory.current.copy_(torch.from_numpy(centers))

    def total(self, method: str, *arguments: Any) -> Any:
        if method != "step":
            return super().total(method, *arguments)
        self.seen.clear()
        with current(self.device):
            return self._step(*arguments)

    def _step(self, centers: NDArray, measure: bool) -> Step:
        self._use(centers)
        # All rows are needed while there are no labels, and where each row is measured.
        listing = self.shared.known and not measure
        listed = [p for p, block in enumerate(self.runs) if listing and block.halved]
        step_listed(listed, self.runs, self.shared, self.sender)
        rest = set(range(len(self.parts))).difference(listed)
        largest = self.some("step", dict.fromkeys(rest, (centers, measure))).values()
        step, n_rechecked = self.shared.end_iteration(max(largest, default=0.0))
        self.runs[0].n_rechecked += n_rechecked
        return step

    def some(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        with current(self.device):
            found = super().some(method, arguments)
            if found and isinstance(next(iter(found.values())), torch.Tensor):
                # The host waits once for all parts.
                answers = torch.stack(list(found.values())).cpu()
                listed = answers.numpy() if answers.ndim > 1 else answers.tolist()
                return dict(zip(found, listed))
            return found

    def labels(self) -> NDArray[np.int32]:
        return np.concatenate([block.labels.cpu().numpy() for block in self.runs])

    def distances(self, centers: NDArray) -> NDArray:
        out = np.empty((self.n_samples, len(centers)), dtype=self.dtype)
        # No more rows at a time than a block that is being sent has.
        step = max(self.room.rows * self.n_features // len(centers), 1)
        with current(self.device):
            for p, X in self.blocks(range(len(self.parts))):
                part, start = self.parts[p], int(self.host.edges[p])
                for first in range(0, len(X), step):
                    self.attach(p, X[first : first + step])
                    rows = slice(start + first, start + first + len(part.data.X))
                    out[rows] = part.distances(centers)
                self.attach(p, None)
        return out


def out_of_core(X: NDArray | Reader, weights: NDArray | None, name: str) -> OutOfCore:
    """Put as many rows as fit on a GPU, after reading all of them once.

    Raises
    ------
    DataError
        A value is not finite.
    MemoryError
        There is too little memory for two blocks and the state of all rows.
    """
    free, weighted = free_bytes(place(name), ALL), weights is not None
    if not isinstance(X, Reader):
        room = Room.of(*X.shape, X.dtype.itemsize, weighted, free)
        return OutOfCore(Array(X, room.rows), weights, name, room)
    source = X.source
    room = Room.of(*source.shape, source.dtype.itemsize, weighted, free, X.lengths[0])
    # Rows that stay on the GPU need not stay on the host.
    there = room.left // X.block_bytes
    X.kept = range(there, there + len(X.kept))
    return OutOfCore(X, weights, name, room)
