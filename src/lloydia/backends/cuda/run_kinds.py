"""The kinds of runs, by the number of features: which one a data set gets, and what follows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KINDS", "LOW_DIM", "MATMUL", "MAX_ROWS", "RunKind", "run_kind"]

# Numbers of rows are 32-bit integers, and programs count some steps past the last row.
MAX_ROWS = 2**31 - 2**22


@dataclass(frozen=True)
class RunKind:
    """What other packages ask of a kind of runs.

    Attributes
    ----------
    package : str
        What has its kernels.
    max_features : int or None
        The most features of a row.
    max_rows : int
        The most rows.
    stores_fp16 : bool
        Whether it reads rows in half precision, from a copy that is made before; if not, its
        scores are float32 numbers, and need a frame.
    measures : bool
        Whether its first launch measures the rows and the start, so that nothing is guessed.
    in_batches : bool
        Whether it runs over many data sets at once.
    bytes_per_row : int
        What a run takes for each row, besides a half-precision copy: a label, a distance and its
        places in lists.
    """

    package: str
    max_features: int | None
    max_rows: int
    stores_fp16: bool
    measures: bool
    in_batches: bool
    bytes_per_row: int

    def row_bytes(self, width: int) -> int:
        """Return the bytes of a row with a half-precision copy of this width; 0 if that exists."""
        copied = 2 * width + 8 if self.stores_fp16 and width else 0
        return self.bytes_per_row + copied


LOW_DIM = RunKind(
    "low_dim",
    max_features=8,
    max_rows=MAX_ROWS,
    stores_fp16=False,
    measures=True,
    in_batches=False,
    bytes_per_row=28,
)
MATMUL = RunKind(
    "matmul",
    max_features=None,
    # A row that changes has two updates in a list, whose places are 32-bit integers as well.
    max_rows=MAX_ROWS // 2,
    stores_fp16=True,
    measures=False,
    in_batches=True,
    bytes_per_row=72,
)
# The first that takes the features of a row is taken.
KINDS = (LOW_DIM, MATMUL)


def run_kind(d: int) -> RunKind:
    """Return the kind of runs over rows of d features."""
    return next(kind for kind in KINDS if kind.max_features is None or d <= kind.max_features)
