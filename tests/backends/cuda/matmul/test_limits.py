"""The limit in float32 is never below the one in float64, and hardly above it."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.matmul.limits import limit_of
from lloydia.backends.cuda.rows.packing import coefficients_of
from lloydia.backends.cuda.runtime.launching import EXACT, place
from lloydia.exact.half_certificate import LAST_STEP, canonical_error, limit, summation

SHIFT, RADIUS, SUMMED, CANONICAL = 40.0, 8.0, summation(64), canonical_error(64)
USUAL_NORM, USUAL_REST = 6.0, 2.0**-9


@triton.jit
def kernel(
    least, norm, residual, own_norm, own_residual, own_bias, out, shift, radius, typical_norm,
    typical_residual, summed, canonical, words, N: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, N)
    coefficients = coefficients_of(
        tl.load(own_norm + i), tl.load(own_residual + i), typical_norm, typical_residual,
        tl.load(own_bias + i), shift,
    )  # fmt: skip
    tl.store(words + i, coefficients)
    # What other threads have stored is loaded.
    tl.debug_barrier()
    found = tl.where(i == 9, -1, i)
    top = limit_of(
        found, i >= 0, tl.load(least + i), tl.load(norm + i), tl.load(residual + i), words,
        shift, radius, summed, canonical,
    )  # fmt: skip
    tl.store(out + i, top)


def limits_of(values, n):
    """Return the limits of rows and centres, and what is kept of the centres."""
    device = place("cuda")
    there = [torch.as_tensor(v).to(device) for v in values]
    out = torch.empty(n, dtype=torch.float32, device=device)
    words = torch.empty(n, dtype=torch.int64, device=device)
    coefficients = SHIFT, RADIUS, USUAL_NORM, USUAL_REST, SUMMED, CANONICAL
    kernel[(1,)](*there, out, *coefficients, words, N=n, **EXACT)
    return out.cpu().numpy().astype(np.float64), words.cpu().numpy()


def parts_of(words):
    """Return the norms, the rests and what depends on no row."""
    halves = words.view(np.uint64) >> np.uint64(32)
    norms = (halves & np.uint64(0xFFFF0000)).astype(np.uint32).view(np.float32)
    residuals = ((halves & np.uint64(0xFFFF)) << np.uint64(16)).astype(np.uint32).view(np.float32)
    fixed = (words.view(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
    return tuple(x.astype(np.float64) for x in (norms, residuals, fixed))


def limit_by(least, norm, residual, norms, residuals, fixed):
    """Return the certificate's limit by these parts, in long double; no row is too far."""
    least, norm, residual, norms, residuals, fixed = (
        x.astype(np.longdouble) for x in (least, norm, residual, norms, residuals, fixed)
    )
    fixed = fixed + (SUMMED + LAST_STEP) * norm * norms + residual * (residual + residuals)
    square = np.maximum(norm * norm + 2 * (least - SHIFT + fixed), 0)
    most = 2 * residual + residuals
    delta = most + np.sqrt(most * most + square + 2 * (fixed + residual * norms))
    rounded = CANONICAL * (delta + residual + residuals) ** 2 + np.longdouble(2.0) ** -60
    return least + fixed + residuals * delta + residual * np.minimum(norms, 2 * delta) + 2 * rounded


def test_float32_is_the_stricter_but_hardly():
    rng = np.random.default_rng(0)
    n = 1 << 14
    norm = rng.uniform(0, 9, n)
    least = rng.uniform(-1, 120, n)
    residual = 2.0 ** rng.uniform(-14, 1, n)
    own = rng.uniform(0, 9, n), 2.0 ** rng.uniform(-12, -8, n), rng.choice([0.0, 0.5], n)
    values = [v.astype(np.float32) for v in (least, norm, residual, *own)]
    values[2][:5] = np.inf
    values[0][5:9] = np.nan
    top, words = limits_of(values, n)
    with np.errstate(all="ignore"):
        expected = limit(
            *(v.astype(np.float64) for v in values), shift=SHIFT, radius=RADIUS,
            typical_norm=USUAL_NORM, typical_residual=USUAL_REST, summed=SUMMED,
            canonical=CANONICAL,
        )  # fmt: skip
        by_parts = limit_by(*(v.astype(np.float64) for v in values[:3]), *parts_of(words))
    assert (top >= expected).all()
    # The last of them is of no centre.
    assert np.isinf(top[:10]).all()
    known = np.isfinite(expected)
    assert known.mean() > 0.1
    assert np.isfinite(top[known]).mean() > 0.99
    both = known & np.isfinite(top)
    # Parts are rounded up by far more than float32 rounds.
    assert (top[both] >= by_parts[both]).all()
    least = values[0][both].astype(np.float64)
    slack = (top[both] - expected[both]) / (expected[both] - least + 1e-6 * expected[both])
    assert slack.max() < 1.0
    assert np.median(slack) < 0.01


def test_terms_are_upper_bounds_and_hardly_more():
    rng = np.random.default_rng(1)
    n = 1 << 10
    own = rng.uniform(0, 9, n), 2.0 ** rng.uniform(-20, 3, n), 2.0 ** rng.uniform(-20, 3, n)
    B, g, e = (v.astype(np.float32) for v in own)
    # With the usual one this is rounded down to what the upper half of the bits can hold.
    B[0] = 2 + 2.0**-22
    assert np.float32(B[0] + np.float32(USUAL_NORM)) == 8.0
    zeros = np.zeros(n, np.float32)
    _, words = limits_of((zeros, zeros, zeros, B, g, e), n)
    norms, residuals, fixed = parts_of(words)
    B, g, e = (v.astype(np.float64) for v in (B, g, e))
    exact = e + LAST_STEP * (0.5 * (B * B + USUAL_NORM**2) + 2 * SHIFT)
    exact += 0.5 * (g * g + USUAL_REST**2)
    wanted = (norms, B + USUAL_NORM, 2.0**-7), (residuals, g + USUAL_REST, 2.0**-7)
    for bound, least, part in (*wanted, (fixed, exact, 2.0**-19)):
        assert (bound >= least).all()
        assert (bound <= least * (1 + part)).all()
