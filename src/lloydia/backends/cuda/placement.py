"""The placement of rows on a GPU: those on the host are copied, if there is room for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lloydia.backends.cuda.dataset import Dataset
from lloydia.backends.cuda.rows.memory import needed_bytes
from lloydia.backends.cuda.run_kinds import run_kind
from lloydia.backends.cuda.runtime.devices import check_memory
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.runtime.upload import to_device
from lloydia.spelling import option

__all__ = ["place_rows"]


def place_rows(X: Any, weights: NDArray | None, device: str) -> Dataset:
    """Put rows on a GPU, which is the current device.

    Parameters
    ----------
    X : torch.Tensor on the device, or ndarray: shape (n, d)
        float16, bfloat16, float32 or float64; NaN and infinity are refused when it is measured.
    weights : ndarray of shape (n,), float64, or None
    device : str

    Raises
    ------
    ValueError
        For more rows than a GPU takes.
    MemoryError
        If there is not enough memory for them and for a run.
    """
    # Rows without numbers (:mod:`rehearsal`) are on no device.
    absent = isinstance(X, torch.Tensor) and X.is_meta
    home = X.device if absent else place(device)
    n, d = X.shape
    most = run_kind(d).max_rows
    if n > most:
        raise ValueError(
            f"X has {n:,} rows of {d:,} features, and a GPU takes at most {most:,} of them: use "
            f"{option('device', 'cpu')}."
        )
    there = isinstance(X, torch.Tensor) and X.device == home
    copied = not there or not X.is_contiguous()
    check_memory(needed_bytes(n, d, X.dtype.itemsize, copied), home)
    rows = X.contiguous() if there else to_device(np.asarray(X), home)
    return Dataset(rows, None if weights is None else torch.as_tensor(weights).to(home))
