"""Our generators against NumPy's, which scikit-learn's draws come from."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import RandomState

from lloydia.seeding.generator import generator


@pytest.mark.parametrize("seed", [0, 1, 42, 2**32 - 1, np.int64(7), True])
def test_a_seed_gives_the_numbers_of_numpy(seed):
    ours, numpys = generator(seed), RandomState(seed)
    assert str(ours.get_state()) == str(numpys.get_state())
    for draw in ("random_sample", "standard_normal", "tomaxint"):
        assert (getattr(ours, draw)(700) == getattr(numpys, draw)(700)).all()


def test_none_is_numpys_own_and_a_generator_is_itself():
    assert generator(None) is np.random.mtrand._rand
    given = RandomState(3)
    assert generator(given) is given


@pytest.mark.parametrize("bad", [-1, 2**32, "0", 1.5])
def test_what_is_no_seed_is_refused(bad):
    with pytest.raises(ValueError, match=r"Seed must|cannot be used to seed"):
        generator(bad)
