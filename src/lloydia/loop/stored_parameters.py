"""Parameters of an estimator as a file without pickle stores them: numbers, text and None."""

from __future__ import annotations

import hashlib
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.stopping import Rule, spell

__all__ = ["GENERATOR", "MT", "State", "stored", "stored_array", "stored_parameters"]

# The stored value of random_state if it is a RandomState.
GENERATOR = "RandomState"

# The only kind of generator whose state a file can hold; every integer seed makes this kind.
MT = "MT19937"

# The type of numpy.random.RandomState.get_state().
State = tuple[str, NDArray[np.uint32], int, int, float]


def stored_parameters(estimator: Any, init: Any) -> dict[str, Any]:
    """Return the parameters as numbers, texts and None, with `init` in place of the estimator's.

    Raises
    ------
    ValueError
        If a file without pickle cannot hold a parameter; the message names it.
    """
    parameters = {**estimator.get_params(deep=False), "init": init}
    # The client of a Dask cluster is a connection, which cannot be stored.
    parameters.pop("client", None)
    return {name: stored(name, value) for name, value in parameters.items()}


def stored(name: str, value: Any) -> Any:
    """Return the number, text or None that stands for a parameter in a file.

    Raises
    ------
    ValueError
        If a file without pickle cannot hold the value.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, np.ndarray):
        return stored_array(value)
    if isinstance(value, Rule):
        return spell(value)
    if isinstance(value, RandomState) and value.get_state(legacy=False)["bit_generator"] == MT:
        return GENERATOR
    raise ValueError(
        f"A checkpoint cannot hold {name}={value!r}: give a number, a name or an array."
    )


def stored_array(value: NDArray) -> str:
    """Return the text that stands for an array in the parameters of a file."""
    return f"array {hashlib.sha256(value.tobytes()).hexdigest()[:16]}"
