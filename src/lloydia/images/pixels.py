"""The pixels that callers give: which are accepted, and their values from 0 to 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.arrays import on_host

__all__ = ["check_range", "checked", "levels", "refuse_path", "stored", "unit"]


def levels(dtype: np.dtype) -> float:
    """Return the stored value of full light: 255, 65535, or 1.0 for floating types."""
    return float(np.iinfo(dtype).max) if dtype.kind == "u" else 1.0


def refuse_path(pixels: Any) -> None:
    """Raise ValueError if `pixels` is the path of a file."""
    if isinstance(pixels, str | Path):
        raise ValueError(
            f"{str(pixels)!r} is a text, not pixels: if it is a path, pass "
            "numpy.asarray(PIL.Image.open(path))."
        )


def checked(pixels: Any) -> NDArray:
    """Return pixels as an ndarray of a supported type.

    Raises
    ------
    ValueError
        If the pixels have another shape or type, or a float is not in [0, 1].
    """
    pixels = np.asarray(on_host(pixels))
    if pixels.ndim == 0 or pixels.shape[-1] != 3:
        raise ValueError(
            f"pixels of shape {pixels.shape} do not have three channels: give the shape (..., 3)."
        )
    if pixels.dtype.kind == "f" and pixels.dtype.itemsize <= 8:
        check_range(pixels)
    elif pixels.dtype not in (np.uint8, np.uint16):
        raise ValueError(
            f"pixels of type {pixels.dtype} are not supported: use uint8, uint16 or floats in "
            "[0, 1]."
        )
    return pixels


def check_range(values: NDArray, what: str = "pixels") -> None:
    """Refuse floating pixels outside of [0, 1]; errors call them `what`.

    Raises
    ------
    ValueError
        If a number is outside of [0, 1], or NaN.
    """
    if values.size == 0 or (values.min() >= 0 and values.max() <= 1):
        return
    if np.isnan(values).any():
        raise ValueError(f"{what} hold NaN: give numbers from 0 to 1.")
    raise ValueError(
        f"floating {what} reach from {values.min():g} to {values.max():g}: scale them to [0, 1], "
        "or give uint8 or uint16."
    )


def unit(pixels: NDArray) -> NDArray[np.float64]:
    """Return pixels as float64 in [0, 1]."""
    return np.true_divide(pixels, levels(pixels.dtype), dtype=np.float64)


def stored(values: NDArray, dtype: np.dtype) -> NDArray:
    """Return values as pixels of a type, clipped to [0, 1] and rounded to its levels."""
    values = values.clip(0.0, 1.0)
    return np.rint(values * levels(dtype)) if dtype.kind == "u" else values
