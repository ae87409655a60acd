"""A data set in a GPU's memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.rows.found_grid import limbs_before
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.rows.frame import frame_of
from lloydia.backends.cuda.rows.magnitudes import magnitudes, new_bounds, queue_bounds
from lloydia.backends.cuda.rows.memory import needed_bytes
from lloydia.backends.cuda.rows.totals import cost_limbs, join_cost, largest_term
from lloydia.backends.cuda.runtime.async_copy import AsyncCopy
from lloydia.backends.cuda.runtime.devices import check_memory
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.runtime.upload import to_device
from lloydia.data.device_rows import refuse_non_finite
from lloydia.data.weights import positive_rows
from lloydia.exact import sums as exact
from lloydia.spelling import option

__all__ = ["Placed"]

# The type of the centres of each type that rows can be stored in.
WIDE = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float32,
    torch.float64: torch.float64,
}

# The same for NumPy.
DTYPES = {wide: np.dtype(str(wide).removeprefix("torch.")) for wide in WIDE.values()}

# Row numbers are 32-bit integers.
MAX_ROWS = 2**31 - 2**20


class Placed:
    """Rows on a GPU; see :class:`lloydia.backends.engine.Engine` for what the methods mean.

    Parameters
    ----------
    X : torch.Tensor on the device, or ndarray: shape (n, d)
        float16, bfloat16, float32 or float64; NaN and infinity are refused when it is measured.
    weights : ndarray of shape (n,), float64, or None
    device : str

    Attributes
    ----------
    X : torch.Tensor of shape (n, d)
        Row-major, on the device, in the type it came in.
    wide : torch.dtype
        Of the centres.
    weights : torch.Tensor of shape (n,), float64, on the device, or None
    batch_size : int
        Of a batch: a data set by itself is the only one.
    """

    batch_size = 1

    def __init__(self, X: Any, weights: NDArray | None, device: str) -> None:
        self.device = place(device)
        self.name = f"cuda:{self.device.index or 0}"
        if X.shape[0] > MAX_ROWS:
            raise ValueError(
                f"X has {X.shape[0]:,} rows, and a GPU takes at most {MAX_ROWS:,}: use "
                f"{option('device', 'cpu')}."
            )
        there = isinstance(X, torch.Tensor) and X.device == self.device
        copied = not there or not X.is_contiguous()
        check_memory(needed_bytes(*X.shape, X.dtype.itemsize, copied), self.device)
        self._hold(X.contiguous() if there else to_device(np.asarray(X), self.device))
        self.weights = None if weights is None else torch.as_tensor(weights).to(self.device)

    def _hold(self, X: torch.Tensor) -> None:
        """Begin with these rows, which are in their place."""
        self.X, self.weights = X, None
        self.wide = WIDE[X.dtype]
        self.dtype = DTYPES[self.wide]
        self.n_samples, self.n_features = X.shape
        self.forget_magnitudes()
        # Its half-precision copy, once there is one.
        self.fp16_rows: Fp16Rows | None = None

    def forget_magnitudes(self) -> None:
        """Forget what is known of the rows: they are others."""
        self._magnitudes: exact.Magnitudes | None = None
        self._grid: exact.Grid | None = None
        self.bounds: AsyncCopy | None = None
        self.measured: torch.Tensor | None = None
        self._frame: NDArray[np.float64] | None = None

    def ask(self) -> AsyncCopy:
        """Queue the measurement of the rows, if nobody has: :meth:`magnitudes` waits for it."""
        if self.bounds is None:
            self.bounds = AsyncCopy(
                queue_bounds(self.X) if self.measured is None else self.measured
            )
        return self.bounds

    def halve(self, later: bool = False) -> None:
        """Queue the half-precision copy of the rows, and their measurement, if nobody has.

        What is measured is on its way to the host then, unless that is to be done `later`, or there
        is a guess of it.
        """
        self.measured = new_bounds(self.X) if self.bounds is None else None
        self.fp16_rows = Fp16Rows(self, bounds=self.measured)
        if self.measured is None or later:
            return
        if self.weights is not None or limbs_before(self.X) is None:
            self.ask()

    def magnitudes(self) -> exact.Magnitudes:
        if self._magnitudes is None:
            weights = None if self.weights is None else self.weights.cpu().numpy()
            found = self.ask().numpy()
            largest, smallest = magnitudes(found, self.X.dtype == torch.float64)
            if not np.isfinite(largest).all():
                self._refuse()
            self._magnitudes = exact.Magnitudes(
                self.n_samples, largest, smallest, *exact.weight_magnitudes(weights)
            )
        return self._magnitudes

    def _refuse(self) -> None:
        """Raise an error for what is not finite."""
        refuse_non_finite(self.X)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights: see :func:`lloydia.exact.sums.total_weight`."""
        if self.weights is None:
            return float(self.n_samples)
        limbs = cost_limbs(self.weights, None, largest_term(self.weights, None))
        return join_cost(limbs.tolist(), self.n_samples)

    def set_grid(self, magnitudes: exact.Magnitudes) -> None:
        self._magnitudes, self._grid = magnitudes, exact.Grid.choose(magnitudes, self.dtype)

    @property
    def grid(self) -> exact.Grid:
        """The grid of all sums; from this data's own magnitudes unless it was set."""
        if self._grid is None:
            self.set_grid(self.magnitudes())
        assert self._grid is not None
        return self._grid

    def frame(self) -> NDArray[np.float64]:
        """Return the frame of float32 scores, found while the rows are here: shape (d + 1,)."""
        if self._frame is None:
            self._frame = frame_of(self.X, self.magnitudes().largest, self.dtype)
        return self._frame

    def rows(self, indices: NDArray[np.int64]) -> NDArray:
        chosen = self.X[torch.as_tensor(indices, device=self.device)]
        return chosen.to(self.wide).cpu().numpy() + 0.0

    def seed_weights(self) -> NDArray[np.float64] | None:
        return None if self.weights is None else self.weights.cpu().numpy()

    def positive_rows(self, count: int) -> NDArray[np.int64]:
        return positive_rows(self.seed_weights(), self.n_samples, count)
