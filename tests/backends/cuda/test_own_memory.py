"""What a fit takes of the device is given back when the fit is over, without a collector."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from lloydia.backends.cuda.engine import CUDA
from lloydia.loop.run import run_iterations
from lloydia.stopping import Shift


@pytest.mark.parametrize("d", [2, 12])
def test_an_engine_goes_with_the_last_that_knows_it(d):
    X = np.random.default_rng(d).normal(size=(60, d)).astype(np.float32)
    gc.collect()
    gc.disable()
    try:
        engine = CUDA(X, None, "cuda")
        result = run_iterations(
            engine, X[:3], algorithm="lloyd", rule=Shift(0.0), max_iter=3, empty="relocate"
        )
        alive = [weakref.ref(engine), weakref.ref(engine.run)]
        del engine
        assert [each() for each in alive] == [None, None]
    finally:
        gc.enable()
    assert result.labels.shape == (60,)
