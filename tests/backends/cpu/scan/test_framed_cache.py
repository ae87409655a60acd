"""Few rows stay in their frame while it is good, and the answer is the same."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cpu.engine import CPU
from lloydia.backends.cpu.simd.microkernel_rows_in_lanes import GROUP
from lloydia.backends.reference import Reference

D, K = 20, 11


def rows(n, dtype):
    rng = np.random.default_rng(n)
    return (rng.normal(size=(n, D)) + rng.integers(0, 5, (n, 1))).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [K, GROUP, 20 * GROUP + 5])
def test_a_frame_is_kept_while_centres_are_near_1_in_it(n, dtype):
    X = rows(n, dtype)
    engine, oracle = CPU(X, None, 1), Reference(X, None)
    frames = []
    # Centres that are far away, and come near.
    for spread in (1000.0, 1.0, 1.0):
        centers = X[:K] * np.array(spread, dtype)
        for one in (engine, oracle):
            one.start(centers, "lloyd")
        for _ in range(3):
            found, right = engine.iterate(True).result(), oracle.iterate(True).result()
            assert found == right
            assert (engine.labels() == oracle.labels()).all()
            assert (engine.centers() == oracle.centers()).all()
            frames.append(engine.run.memory.packed.frame)
    assert engine.run.framed_cache.frame is frames[-1]
    assert frames[2] is not frames[3]
    assert frames[4] is frames[5] is frames[7]


def test_many_rows_and_narrow_ones_are_not_cached():
    for n, d in ((20_000, D), (100, 3)):
        engine = CPU(np.ones((n, d)), None, 1)
        engine.start(np.ones((2, d)), "lloyd")
        assert engine.run.framed_cache is None
