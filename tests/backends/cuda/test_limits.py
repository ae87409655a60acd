"""The limit in float32 is never below the one in float64, and hardly above it."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda import limits
from lloydia.backends.cuda.launching import place
from lloydia.exact.half_certificate import canonical_error, limit, summation

SHIFT, RADIUS, SUMMED, CANONICAL = 40.0, 8.0, summation(64), canonical_error(64)
USUAL_NORM, USUAL_REST = 6.0, 2.0**-9


@triton.jit
def kernel(
    least, norm, rest, own_norm, own_rest, own_lowered, out, shift, radius, usual_norm, usual_rest,
    summed, canonical, N: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, N)
    top = limits.limit(
        tl.load(least + i), tl.load(norm + i), tl.load(rest + i), tl.load(own_norm + i),
        tl.load(own_rest + i), tl.load(own_lowered + i), shift, radius, usual_norm, usual_rest,
        summed, canonical,
    )  # fmt: skip
    tl.store(out + i, top)


def test_float32_is_the_stricter_but_hardly():
    rng = np.random.default_rng(0)
    n = 1 << 14
    norm = rng.uniform(0, 9, n)
    least = rng.uniform(-1, 120, n)
    rest = 2.0 ** rng.uniform(-14, 1, n)
    own = rng.uniform(0, 9, n), 2.0 ** rng.uniform(-12, -8, n), rng.choice([0.0, 0.5], n)
    values = [v.astype(np.float32) for v in (least, norm, rest, *own)]
    values[2][:5] = np.inf
    values[0][5:9] = np.nan
    device = place("cuda")
    there = [torch.as_tensor(v).to(device) for v in values]
    out = torch.empty(n, dtype=torch.float32, device=device)
    terms = SHIFT, RADIUS, USUAL_NORM, USUAL_REST, SUMMED, CANONICAL
    kernel[(1,)](*there, out, *terms, N=n)
    top = out.cpu().numpy().astype(np.float64)
    with np.errstate(all="ignore"):
        expected = limit(
            *(v.astype(np.float64) for v in values), shift=SHIFT, radius=RADIUS,
            usual_norm=USUAL_NORM, usual_rest=USUAL_REST, summed=SUMMED, canonical=CANONICAL,
        )  # fmt: skip
    assert (top >= expected).all()
    assert np.isinf(top[:9]).all()
    known = np.isfinite(expected)
    assert known.mean() > 0.1
    assert np.isfinite(top[known]).mean() > 0.99
    both = known & np.isfinite(top)
    least = values[0][both].astype(np.float64)
    slack = (top[both] - expected[both]) / (expected[both] - least + 1e-6 * expected[both])
    assert slack.max() < 1.0
    assert np.median(slack) < 0.01
