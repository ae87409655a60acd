from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.rows.totals import cost_limbs, exponent_of, join_cost, largest_term
from lloydia.backends.cuda.runtime.launching import place
from lloydia.exact import sums

DEVICE = place("cuda")


def on_device(array):
    return torch.as_tensor(array, device=DEVICE)


@triton.jit
def exponents(values, out, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(out + i, exponent_of(tl.load(values + i)))


def test_exponents_are_those_of_frexp():
    rng = np.random.default_rng(0)
    values = rng.random(128) * 10.0 ** rng.uniform(-320, 300, size=128)
    values[:6] = 0.0, 5e-324, 2.0**-1022, 2.0**-1022 * (1 - 2.0**-52), 1.0, 2.0**1023
    out = torch.empty(128, dtype=torch.int32, device=DEVICE)
    exponents[(1,)](on_device(values), out, 128)
    assert out.tolist() == [math.frexp(v)[1] for v in values.tolist()]


SCALES = [0, -5, 5, -160, -300, 150, 290]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 17, 5000])
def test_totals_are_those_of_the_oracle(n, weighted):
    for scale in SCALES:
        rng = np.random.default_rng(n)
        D = rng.random(n) * 10.0 ** rng.uniform(scale - 12, scale, size=n)
        weights = 10.0 ** rng.uniform(-6, 6, size=n) * (rng.random(n) < 0.9) if weighted else None
        terms = D if weights is None else weights * D
        w = None if weights is None else on_device(weights)
        largest = largest_term(on_device(D), w)
        assert largest.item() == terms.max()
        assert join_cost(cost_limbs(on_device(D), w, largest).tolist(), n) == sums.total(terms)


def test_nothing_costs_nothing():
    D = torch.zeros(30, dtype=torch.float64, device=DEVICE)
    assert join_cost(cost_limbs(D, None, largest_term(D, None)).tolist(), 30) == 0.0
