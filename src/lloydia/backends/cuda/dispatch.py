"""Which kernels a run launches: one table, by shape, type and GPU, with the reasons.

The code that launches kernels calls :func:`chosen` with a stage, and ``lloydia info --shape``
prints what it answers (:func:`choices`).  The first case of a stage whose condition holds is taken.
The stage ``RUN`` is that of :mod:`run_kinds`, which packages below this one ask as well.  The other
stages are for more than 8 features; with fewer the one choice is that of tables of sums, in
:mod:`low_dim.shape`.  Seedings choose in :mod:`seeding.state` and :mod:`seeding.several`.
No choice changes a bit of any result.  Thresholds were measured on an H200.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lloydia.backends.cuda import options
from lloydia.backends.cuda.device_functions.fp16_scores import WIDEST_IN_REGISTERS, group_of
from lloydia.backends.cuda.protocols import WholeRows
from lloydia.backends.cuda.rows.fp16_rows import padded
from lloydia.backends.cuda.run_kinds import LOW_DIM, run_kind
from lloydia.backends.cuda.runtime.hopper import fits_triton, has_gluon
from lloydia.backends.cuda.runtime.launching import next_power
from lloydia.backends.cuda.update.table_layout import Table

__all__ = [
    "MAX_PACKED_CENTERS",
    "MAX_PRUNED_CENTERS",
    "PADDED",
    "TABLE",
    "Case",
    "Kernels",
    "Stage",
    "Work",
    "choices",
    "chosen",
    "work_of",
]

# Centres that stay in a multiprocessor, and features of stored rows beside them; what the number of
# centres is padded to a multiple of there, and the rows of a block.
MAX_RESIDENT_CENTERS, MAX_RESIDENT_FEATURES, PADDED, BLOCK = 256, 64, 64, 64
# What one program compares rows to by exact distances; the bytes of a table of all centres that
# leave room for several programs on a multiprocessor.
MAX_RECHECK_FEATURES, MAX_RECHECK_CENTERS, MAX_RECHECK_BYTES = 128, 512, 1 << 15
# Centres that the last program of an iteration packs for the next one.
MAX_PACKED_CENTERS = 256
# Products of a scan from which on it takes much longer than what bounds take; and centres, which
# one program looks at.
MIN_PRUNED_PRODUCTS, MIN_PRUNED_CENTERS, MAX_PRUNED_CENTERS = 1e11, 256, 8192
# Features that tables in shared memory are for.
MAX_TABLE_FEATURES = 256


@dataclass(frozen=True)
class Work:
    """What the choice of kernels depends on.

    Attributes
    ----------
    n, d, k : int
        Rows, features and clusters.
    itemsize : int
        Bytes of a number of the centres: 4 or 8.
    weighted : bool
        Whether rows have weights.
    aligned : bool
        Whether X begins at a multiple of 16 bytes.
    gluon : bool
        Whether the GPU is a Hopper, and Triton has the Gluon that :mod:`matmul.hopper_scan` needs.
    """

    n: int
    d: int
    k: int
    itemsize: int
    weighted: bool = False
    aligned: bool = True
    gluon: bool = False

    @staticmethod
    def over(rows: WholeRows, k: int) -> Work:
        """Return what the choice of kernels for k clusters of some rows depends on.

        All but where they begin: the rows of blocks are not always on the GPU.
        """
        return Work(
            rows.n_samples, rows.n_features, k, rows.wide.itemsize, rows.weights is not None,
            gluon=has_gluon(rows.device),
        )  # fmt: skip

    @property
    def width(self) -> int:
        """Features of a row stored in half precision."""
        return padded(self.d)

    @property
    def resident_size(self) -> int:
        """Centres, padded as kernels that keep all of them have them."""
        return -(-self.k // PADDED) * PADDED

    @property
    def table(self) -> Table | None:
        """The layout of a table in shared memory, if there is room for one."""
        return Table.of(self.k, self.itemsize, self.d % 16 == 0 and self.aligned)


class Stage(StrEnum):
    """What is chosen."""

    RUN = "run"
    SCORES = "scores"
    PACKING = "packing of centres"
    RECHECK = "recheck of ambiguous rows"
    PRUNING = "pruning"
    SUMS = "sums of clusters"


class Kernels(StrEnum):
    """What it is chosen from; each but "none" names a module, a package, or two modules."""

    LOW_DIM = "low_dim"
    MATMUL = "matmul"
    HOPPER = "matmul.hopper_scan"
    RESIDENT = "matmul.resident_scan"
    TILED = "matmul.scan"
    WIDE = "matmul.wide_scan"
    WITH_UPDATE = "update.means"
    BEFORE_SCORES = "matmul.fp16_centers"
    ALL = "matmul.recheck_all"
    PAIRS = "matmul.recheck_pairs"
    PAIRS_THEN_ALL = "matmul.recheck_pairs, matmul.recheck_exact"
    BOUNDS = "matmul.pruning"
    NONE = "none"
    TABLES = "update.table_sums"
    SORTED = "update.sorted_updates"


@dataclass(frozen=True)
class Case:
    """One choice.

    Attributes
    ----------
    kernels : Kernels
    when : callable
        Whether it is for some work.
    why : str
        The reason: a sentence.
    """

    kernels: Kernels
    when: Callable[[Work], bool]
    why: str


def always(work: Work) -> bool:
    """Return True: of the last case of a stage."""
    return True


def keeps_all(work: Work) -> bool:
    """Return whether a multiprocessor keeps all centres in half precision."""
    return work.width <= MAX_RESIDENT_FEATURES and work.k <= MAX_RESIDENT_CENTERS


def fits_gluon(work: Work) -> bool:
    """Return whether the kernel in Gluon is for this work."""
    size = work.resident_size
    fits = size & (size - 1) == 0 and work.n >= BLOCK
    return keeps_all(work) and fits and work.gluon and options.is_on("gluon")


def packs_in_update(work: Work) -> bool:
    """Return whether the last program of an iteration packs the centres of the next one."""
    return work.k <= MAX_PACKED_CENTERS and work.width <= WIDEST_IN_REGISTERS


def compares_all(work: Work) -> bool:
    """Return whether one program compares a row to all centres by exact distances."""
    return work.d <= MAX_RECHECK_FEATURES and work.k <= MAX_RECHECK_CENTERS


def tabulates_all(work: Work) -> bool:
    """Return whether exact distances to all centres come from a table in shared memory."""
    size = work.d * next_power(work.k, 32) * work.itemsize
    return compares_all(work) and size <= MAX_RECHECK_BYTES


def prunes(work: Work) -> bool:
    """Return whether bounds may pay, late in a run.

    Pruned iterations need centres that are packed before the scores, a recheck that begins with
    candidates, and scores that are not summed in groups.
    """
    if not options.is_on("pruning") or not MIN_PRUNED_CENTERS <= work.k <= MAX_PRUNED_CENTERS:
        return False
    if float(work.n) * work.width * work.k < MIN_PRUNED_PRODUCTS or group_of(work.width):
        return False
    packs = chosen(Stage.PACKING, work).kernels is Kernels.WITH_UPDATE
    return not packs and chosen(Stage.RECHECK, work).kernels is not Kernels.ALL


def adds_in_shared_memory(work: Work) -> bool:
    """Return whether what changed is added in tables in shared memory."""
    few = work.d <= MAX_TABLE_FEATURES and not work.weighted
    return few and options.is_on("shared_memory_tables") and work.table is not None


TABLE: dict[Stage, tuple[Case, ...]] = {
    Stage.RUN: (
        Case(
            Kernels.LOW_DIM, lambda work: run_kind(work.d) is LOW_DIM,
            f"A row of at most {LOW_DIM.max_features} features stays in a thread's registers, and "
            "its scores are sums of products with centres that all threads share.",
        ),
        Case(
            Kernels.MATMUL, always,
            "Scores of more features are products of half-precision matrices, which matrix units "
            "compute.",
        ),
    ),
    Stage.SCORES: (
        Case(
            Kernels.HOPPER, fits_gluon,
            "All centres stay in shared memory, and on Hopper one group of warps multiplies while "
            "others compare.",
        ),
        Case(
            Kernels.RESIDENT, keeps_all,
            f"All centres (at most {MAX_RESIDENT_CENTERS}, of at most {MAX_RESIDENT_FEATURES} "
            "stored features) stay in a multiprocessor, and rows stream past them.",
        ),
        Case(
            Kernels.TILED, lambda work: work.width <= WIDEST_IN_REGISTERS,
            f"Rows of at most {WIDEST_IN_REGISTERS} stored features stay in registers, and tiles "
            "of centres stream past them.",
        ),
        Case(
            Kernels.WIDE, lambda work: not group_of(work.width),
            "Rows are too wide for registers: rows and centres are read in chunks, and sums of "
            "this many features lose little in one arena.",
        ),
        Case(
            Kernels.TILED, always,
            "Sums of so many features are added up in groups, which keeps their error small.",
        ),
    ),
    Stage.PACKING: (
        Case(
            Kernels.WITH_UPDATE, packs_in_update,
            f"The last program of an iteration packs at most {MAX_PACKED_CENTERS} centres for the "
            "next one, which saves two launches.",
        ),
        Case(
            Kernels.BEFORE_SCORES, always,
            "One program would take too long over so many centres or features, so many programs "
            "pack them at the start of an iteration.",
        ),
    ),
    Stage.RECHECK: (
        Case(
            Kernels.ALL, tabulates_all,
            f"All centres take at most {MAX_RECHECK_BYTES >> 10} KiB of shared memory, so exact "
            "distances to all of them take one launch.",
        ),
        Case(
            Kernels.PAIRS, compares_all,
            "Few centres are left for an ambiguous row; rows with many candidates are compared to "
            "all centres in the same launch.",
        ),
        Case(
            Kernels.PAIRS_THEN_ALL, always,
            "Few centres are left for an ambiguous row; rows with many candidates are compared to "
            "all centres by many programs.",
        ),
    ),
    Stage.PRUNING: (
        Case(
            Kernels.BOUNDS, prunes,
            "Late in a long run few rows change, and bounds (a look at each row, five launches) "
            "take much less time than scores of all rows.",
        ),
        Case(
            Kernels.NONE, always,
            "Scores of all rows take little more time than bounds would, or no bounds are made for "
            "this number of centres.",
        ),
    ),
    Stage.SUMS: (
        Case(
            Kernels.TABLES, adds_in_shared_memory,
            "The sums of all clusters fit in shared memory, where additions are faster.",
        ),
        Case(
            Kernels.SORTED, always,
            f"Rows have weights, more than {MAX_TABLE_FEATURES} features, or too many clusters for "
            "shared memory: rows that changed are sorted by cluster, then added up.",
        ),
    ),
}  # fmt: skip


def work_of(n: int, d: int, k: int, itemsize: int, capability: tuple[int, int]) -> Work:
    """Return what the choice depends on, for rows without weights.

    Parameters
    ----------
    n, d, k : int
        Rows, features and clusters.
    itemsize : int
        Bytes of a number.
    capability : tuple of two int
        The compute capability of the GPU.
    """
    return Work(n, d, k, itemsize, gluon=fits_triton(capability))


def chosen(stage: Stage, work: Work) -> Case:
    """Return the case of a stage that is for some work."""
    return next(case for case in TABLE[stage] if case.when(work))


def choices(work: Work) -> list[tuple[Stage, Case]]:
    """Return all that is chosen for some work, stage by stage."""
    run = chosen(Stage.RUN, work)
    if run.kernels is Kernels.LOW_DIM:
        return [(Stage.RUN, run)]
    return [(stage, chosen(stage, work)) for stage in Stage]
