"""The certificate of half-precision scores, against worst cases and canonical labels."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.exact import distance
from lloydia.exact.half_certificate import (
    ADDED,
    FAR_CENTER,
    FAR_SCORE,
    LAST_STEP,
    canonical_error,
    certified,
    pair_rest,
    summation,
)
from nasty import FLAVOURS, rows_of


def unit_vectors(rng, n, d):
    v = rng.normal(size=(n, d))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def length(v):
    return np.linalg.norm(v, axis=-1)


def worst_cases(rng, n, d, rest, residual, gaps):
    """Draw rows and pairs of centres near a tie, with everything left out working against it.

    Returns what :func:`certified` takes, and whether the second centre is really the nearer.
    """
    y = unit_vectors(rng, n, d) * rng.uniform(0.5, 1.0, size=(n, 1))
    b1 = unit_vectors(rng, n, d) * rng.uniform(0.1, 1.0, size=(n, 1))
    b2 = unit_vectors(rng, n, d)
    largest, radius = 1.1, 1.5
    shift = 0.6 * radius**2
    start, summed = 0.5 * largest**2 + shift, summation(d, d)
    nu = (summed + LAST_STEP) * length(y) * largest + LAST_STEP * start
    # Along b2, the score |b2|^2 / 2 - y.b2 passes the other's: stop a small gap beyond it.
    score1 = 0.5 * length(b1) ** 2 - (y * b1).sum(1)
    along = (y * b2).sum(1)
    inner = along**2 + 2.0 * (score1 + gaps)
    possible = inner > 0
    b2 = b2 * (along + np.sqrt(np.maximum(inner, 0.0)))[:, None]
    possible &= length(b2) <= largest
    away = b2 - b1
    e = away / length(away)[:, None] * rest
    x = y + e
    to1, to2 = x - b1, x - b2
    f1 = -to1 / length(to1)[:, None] * residual
    f2 = to2 / length(to2)[:, None] * residual
    farther = length(x - b1 - f1) >= length(x - b2 - f2)
    score2 = 0.5 * length(b2) ** 2 - (y * b2).sum(1)
    # The computed scores are off as far as they may be.
    sure = certified(
        score1 + shift - nu, score2 + shift + nu, length(y), np.full(n, rest),
        shift=shift, radius=radius, largest=largest, residual=residual, start=start,
        summed=summed, added=LAST_STEP, canonical=canonical_error(d),
    )  # fmt: skip
    return sure[possible], farther[possible]


@pytest.mark.parametrize("d", [2, 16, 300])
@pytest.mark.parametrize(("rest", "residual"), [(1e-3, 1e-3), (1e-2, 0.0), (0.0, 1e-2), (0.2, 0.1)])
def test_no_worst_case_is_certified(d, rest, residual):
    rng = np.random.default_rng(d)
    n = 200_000 // d**2 + 2000
    gaps = 10.0 ** rng.uniform(-2, 1, size=n) * (rest + residual)
    sure, farther = worst_cases(rng, n, d, rest, residual, gaps)
    assert farther.any()
    assert not (sure & farther).any()
    # Nor is the bound idle.
    assert sure.any() or rest + residual > 0.1


def halved(V, origin, scale):
    """Return rows in the frame, rounded to float16, and what that left out."""
    exact = (V.astype(np.float64) - origin) * scale
    y = np.clip(exact, -65504.0, 65504.0).astype(np.float16).astype(np.float64)
    return y, length(exact - y) * (1 + 2.0**-20) + 2.0**-50 * (1 + length(y)), exact


@pytest.mark.parametrize("flavour", [*FLAVOURS, "near ties"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pairs", [False, True])
def test_a_certified_label_is_the_canonical_one(flavour, dtype, pairs):
    rng = np.random.default_rng(5)
    for seed in range(20):
        if flavour == "near ties":
            X = rows_of("gauss", 400, 12, dtype, seed)
            C = np.repeat(X[:8], 3, axis=0)
            C = (C * (1 + rng.uniform(-1, 1, size=C.shape) * 10.0 ** rng.uniform(-9, -2))).astype(
                dtype
            )
        else:
            X = rows_of(flavour, 400, 12, dtype, seed)
            C = X[:24]
        with np.errstate(all="ignore"):
            label, sure = scan(X, C, rng, pairs)
        expected, _ = distance.nearest(X, C)
        np.testing.assert_array_equal(label[sure], expected[sure])


def scan(X, C, rng, pairs):
    """Score as the GPU does, each score off by a random part of what it may be off."""
    d = X.shape[1]
    middle = np.median(X.astype(np.float64), axis=0)
    typical = np.median(np.abs(X.astype(np.float64) - middle).max(axis=1))
    scale = 2.0 ** np.clip(4 - np.frexp(typical)[1], -500, 500) if typical > 0 else 1.0
    y, rest, x = halved(X, middle, scale)
    b, residual, c = halved(C, middle, scale)
    norm, dropped = length(y), 0.0
    if pairs:
        low = np.clip(x - y, -65504, 65504).astype(np.float16).astype(np.float64)
        b_low = np.clip(c - b, -65504, 65504).astype(np.float16).astype(np.float64)
        dropped, norm = 1.001 * rest, norm + rest
        rest = pair_rest(rest, d) + norm * 2.0**-50
        residual = pair_rest(length(b_low), d) + 2.0**-50 * length(b)
        y, b = y + low, b + b_low
    radius = max(1.0, min((norm + rest).max(), 4.0 * np.median(norm)))
    shift = 0.5 * radius**2 * (1 + 2.0**-8)
    near = length(c) <= FAR_CENTER * radius
    if pairs:
        dropped = dropped * length(b_low[near]).max(initial=0.0)
    largest = length(b[near]).max(initial=0.0) * (1 + 2.0**-20)
    start = (0.5 * length(b[near]) ** 2 + shift).max(initial=0.0) * (1 + 2.0**-20)
    summed, added = summation(d, d), ADDED if pairs else LAST_STEP
    s = np.where(near, 0.5 * length(b) ** 2 - y @ np.where(near[:, None], b, 0).T, 0.0)
    s = np.where(near, s, FAR_SCORE * radius**2) + shift
    nu = (summed + added) * norm * largest + added * start + dropped
    s = s + np.where(near, nu[:, None] * rng.choice([-0.99, 0.0, 0.99], size=s.shape), 0.0)
    order = np.sort(s, axis=1)
    sure = certified(
        order[:, 0], order[:, 1], norm, rest,
        shift=shift, radius=radius, largest=largest, residual=residual[near].max(initial=0.0),
        start=start, summed=summed, added=added, canonical=canonical_error(d), dropped=dropped,
    )  # fmt: skip
    return s.argmin(axis=1), sure


@pytest.mark.parametrize("pairs", [False, True])
def test_ordinary_rows_are_certified(pairs):
    rng = np.random.default_rng(0)
    for offset in (0.0, 1e3):
        X = (rng.normal(size=(5000, 64)) + offset).astype(np.float32)
        _, sure = scan(X, X[:100], rng, pairs)
        assert (~sure).mean() < (0.005 if pairs else 0.05)


def test_what_is_no_number_is_not_certified():
    bad = np.array([np.nan, np.inf, -np.inf])
    fine = np.full(3, 1.0)
    terms = {"shift": 1.0, "radius": 8.0, "largest": 1.0, "residual": 1e-3, "start": 2.0}
    terms |= {"summed": 1e-5, "added": 1e-6, "canonical": 1e-15}
    with np.errstate(all="ignore"):
        assert certified(fine, 2 * fine, fine, 1e-3 * fine, **terms).all()
        assert not certified(bad, 2 * fine, fine, 1e-3 * fine, **terms).any()
        assert not certified(fine, 2 * fine, np.abs(bad), 1e-3 * fine, **terms).any()
        assert not certified(fine, 2 * fine, fine, np.abs(bad), **terms).any()
        assert not certified(-fine, fine, fine, 0 * fine, **terms).any()


@pytest.mark.parametrize("sign", ["positive", "signed"])
@pytest.mark.parametrize(("chunk", "group"), [(32, None), (32, 512), (64, 256)])
def test_chunks_and_groups_are_summed_within_the_bound(chunk, group, sign):
    """Chunks without an error of their own: what is added to one number after the other rounds."""
    rng = np.random.default_rng(0)
    d = 8192
    A, B = rng.uniform(0.5, 1.5, size=(2, 50, d))
    if sign == "signed":
        A -= 1.0
    chunks = (A * B).reshape(50, -1, chunk).sum(axis=2).astype(np.float32)
    if group is not None:
        chunks = np.cumsum(chunks.reshape(50, -1, group // chunk), axis=2)[:, :, -1]
    total = np.cumsum(chunks, axis=1, dtype=np.float32)[:, -1]
    error = np.abs(total - (A * B).sum(axis=1)) / (length(A) * length(B))
    assert error.max() <= summation(d, chunk, group)
    assert summation(d, 32, 512) < 0.4 * summation(d, 32)
