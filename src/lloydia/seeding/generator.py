"""The generator of the random numbers of starts: NumPy's legacy one, as in scikit-learn."""

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

# Seeds are integers below this.
SEEDS = 1 << 32


class Blank(ISeedSequence):
    """A state of zeros for a generator that is seeded afterwards; a random state takes time."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Return `n_words` zeros."""
        return np.zeros(n_words, dtype)


def is_seed(random_state: Any) -> bool:
    """Return whether `random_state` is an integer that :func:`generator` accepts."""
    return isinstance(random_state, Integral) and 0 <= random_state < SEEDS  # type: ignore[operator]


def generator(random_state: Any) -> RandomState:
    """Return the same generator as :func:`sklearn.utils.check_random_state`.

    Parameters
    ----------
    random_state : int, RandomState instance or None

    Raises
    ------
    ValueError
        If `random_state` is of another type, or an integer that is not a valid seed.
    """
    if not isinstance(random_state, Integral):
        return check_random_state(random_state)
    blank: Any = Blank()
    fresh = RandomState(MT19937(blank))
    fresh.seed(int(random_state))
    return fresh


@contextmanager
def undone_on_error(state: RandomState | None) -> Iterator[None]:
    """Restore the state of a generator after an error or an interrupt within.

    The state of NumPy's global generator is not restored, because other code draws from it too.
    """
    own = state if state is not np.random.mtrand._rand else None
    before: Any = None if own is None else own.get_state()
    try:
        yield
    except BaseException:
        if own is not None:
            own.set_state(before)
        raise
