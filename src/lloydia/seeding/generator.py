"""What the random numbers of starts come from: NumPy's legacy generator, as scikit-learn's do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import MT19937, RandomState
from numpy.random.bit_generator import ISeedSequence
from sklearn.utils import check_random_state

__all__ = ["generator", "is_seed", "undone_on_error"]

# Seeds are below.
SEEDS = 1 << 32


class Blank(ISeedSequence):
    """Zeros: what a generator begins with that is to be seeded anew; random ones take time."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Return that many zeros."""
        return np.zeros(n_words, dtype)


def is_seed(random_state: Any) -> bool:
    """Return whether this is an integer that :func:`generator` takes."""
    return isinstance(random_state, Integral) and 0 <= random_state < SEEDS  # type: ignore[operator]


def generator(random_state: Any) -> RandomState:
    """Return the generator that :func:`sklearn.utils.check_random_state` does.

    Parameters
    ----------
    random_state : int, RandomState instance or None

    Raises
    ------
    ValueError
        For anything else, and for integers that are no seed.
    """
    if not isinstance(random_state, Integral):
        return check_random_state(random_state)
    blank: Any = Blank()
    fresh = RandomState(MT19937(blank))
    fresh.seed(int(random_state))
    return fresh


@contextmanager
def undone_on_error(state: RandomState | None) -> Iterator[None]:
    """Have a generator draw the same numbers again after an error or an interrupt within.

    NumPy's global generator, which others draw from as well, is left as it is.
    """
    own = state if state is not np.random.mtrand._rand else None
    before: Any = None if own is None else own.get_state()
    try:
        yield
    except BaseException:
        if own is not None:
            own.set_state(before)
        raise
