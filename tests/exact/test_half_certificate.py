"""The certificate of half-precision scores, against worst cases and canonical labels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lloydia.exact import distance
from lloydia.exact.half_certificate import (
    FAR_CENTER,
    FAR_SCORE,
    LAST_STEP,
    canonical_error,
    distance_above,
    distance_below,
    limit,
    score_bias,
    summation,
)
from nasty import FLAVOURS, rows_of


def unit_vectors(rng, n, d):
    v = rng.normal(size=(n, d))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def length(v):
    return np.linalg.norm(v, axis=-1)


def worst_cases(rng, n, d, rest, residual, gaps, usual):
    """Draw rows and pairs of centres near a tie, with everything left out working against it.

    Centres are up to 1.1 from the origin, and `usual` is the part of that and of `residual` that
    counts as usual.  Returns whether the first is said to be the nearer, and whether the second
    really is.
    """
    y = unit_vectors(rng, n, d) * rng.uniform(0.5, 1.0, size=(n, 1))
    b1 = unit_vectors(rng, n, d) * rng.uniform(0.1, 1.0, size=(n, 1))
    b2 = unit_vectors(rng, n, d)
    largest, radius = 1.1, 1.5
    shift, summed = 0.6 * radius**2, summation(d)
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
    ordinary = {
        "typical_norm": usual * largest,
        "typical_residual": usual * residual,
        "summed": summed,
    }
    rests = np.full(n, residual)
    e1, e2 = (
        score_bias(length(b), rests, **ordinary, largest_residual=rest, radius=radius)
        for b in (b1, b2)
    )
    nu1, nu2 = (
        (summed + LAST_STEP) * length(y) * length(b) + LAST_STEP * (0.5 * length(b) ** 2 + shift)
        for b in (b1, b2)
    )
    top = limit(
        score1 + shift - e1 - nu1, length(y), np.full(n, rest), length(b1), rests, e1,
        shift=shift, radius=radius, canonical=canonical_error(d), **ordinary,
    )  # fmt: skip
    sure = score2 + shift - e2 + nu2 > top
    return sure[possible], farther[possible]


@pytest.mark.parametrize("d", [2, 16, 300])
@pytest.mark.parametrize(("rest", "residual"), [(1e-3, 1e-3), (1e-2, 0.0), (0.0, 1e-2), (0.2, 0.1)])
@pytest.mark.parametrize("usual", [0.0, 0.4, 1.0])
def test_no_worst_case_is_certified(d, rest, residual, usual):
    rng = np.random.default_rng(d)
    n = 200_000 // d**2 + 2000
    gaps = 10.0 ** rng.uniform(-2, 1, size=n) * (rest + residual)
    sure, farther = worst_cases(rng, n, d, rest, residual, gaps, usual)
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
def test_the_canonical_label_is_within_the_limit(flavour, dtype):
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
            s, top = scan(X, C, rng)
        expected, _ = distance.nearest(X, C)
        assert (s[np.arange(len(X)), expected] <= top).all()


def scan(X, C, rng):
    """Score as the GPU does, each score off by a random part of what it may be off.

    Returns the scores, and the limit of each row's least.
    """
    d = X.shape[1]
    middle = np.median(X.astype(np.float64), axis=0)
    typical = np.median(np.abs(X.astype(np.float64) - middle).max(axis=1))
    scale = 2.0 ** np.clip(4 - np.frexp(typical)[1], -500, 500) if typical > 0 else 1.0
    y, rest, _ = halved(X, middle, scale)
    b, residual, c = halved(C, middle, scale)
    norm = length(y)
    radius = max(1.0, min((norm + rest).max(), 4.0 * np.median(norm)))
    shift = 0.5 * radius**2 * (1 + 2.0**-4) + 4.0
    near = length(c) <= FAR_CENTER * radius
    grow = 1 + 2.0**-20
    norms, rests = np.where(near, length(b), 0.0) * grow, np.where(near, residual, 0.0)
    inside = rest[norm + rest <= radius]
    terms = {"typical_norm": norms.sum() / max(near.sum(), 1)}
    terms |= {"typical_residual": rests.sum() / max(near.sum(), 1), "summed": summation(d)}
    e = score_bias(norms, rests, **terms, largest_residual=inside.max(initial=0.0), radius=radius)
    s = np.where(near, 0.5 * length(b) ** 2 - y @ np.where(near[:, None], b, 0).T - e, 0.0)
    s = np.where(near, s, FAR_SCORE * radius**2) + shift
    errors = (terms["summed"] + LAST_STEP) * norm[:, None] * norms
    errors += LAST_STEP * (0.5 * norms**2 + shift)
    s = s + np.where(near, errors * rng.choice([-0.99, 0.0, 0.99], size=s.shape), 0.0)
    assert s[norm + rest <= radius].min(initial=4.0) >= 4.0
    own = s.argmin(axis=1)
    top = limit(
        s.min(axis=1), norm, rest, norms[own], rests[own], e[own],
        shift=shift, radius=radius, canonical=canonical_error(d), **terms,
    )  # fmt: skip
    return s, top


def test_ordinary_rows_have_few_candidates():
    rng = np.random.default_rng(0)
    for offset in (0.0, 1e3):
        X = (rng.normal(size=(5000, 64)) + offset).astype(np.float32)
        s, top = scan(X, X[:100], rng)
        candidates = (s <= top[:, None]).sum(axis=1)
        assert (candidates > 1).mean() < 0.05
        assert candidates.max() < 10


def test_centers_far_out_spoil_no_bound_but_their_own():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 64)).astype(np.float32)
    X[0] *= 12
    centers = np.concatenate([X[:1], 0.1 * X[1:100]])
    s, top = scan(X, centers, rng)
    _, without = scan(X, centers[1:], rng)
    more = (s <= top[:, None]).sum(axis=1) > 1
    assert more.mean() < 1.5 * ((s[:, 1:] <= without[:, None]).sum(axis=1) > 1).mean()


def test_the_limit_is_hardly_more_than_is_asked():
    """The closed form against its equation: one delta serves for both kinds of bounds."""
    least, norm, rest = np.linspace(4.5, 9.0, 50), np.linspace(0.1, 2.0, 50), np.full(50, 1e-2)
    own = np.full(50, 2.0), np.full(50, 3e-2), np.full(50, 0.1)
    terms = {
        "shift": 4.0,
        "radius": 8.0,
        "typical_norm": 3.0,
        "typical_residual": 2e-2,
        "summed": 1e-5,
    }
    top = limit(least, norm, rest, *own, **terms, canonical=0.0)
    nu1, nu = ((1e-5 + LAST_STEP) * norm * B + LAST_STEP * (0.5 * B * B + 4.0) for B in (2.0, 3.0))
    delta = np.sqrt(norm**2 + 2 * (top - 4.0 + nu1 + nu))
    asked = 0.1 + nu1 + nu + np.minimum(rest * 5.0, 2 * rest * delta) + 5e-2 * delta
    asked += 0.5 * (4e-2**2 + 3e-2**2)
    assert (top - least >= asked).all()
    np.testing.assert_allclose(top - least, asked, rtol=0.05)


def test_what_is_no_number_has_no_limit():
    bad = np.array([np.nan, np.inf, -np.inf])
    fine = np.full(3, 1.0)
    own = fine, 1e-3 * fine, 0 * fine
    terms = {"shift": 1.0, "radius": 8.0, "typical_norm": 1.0, "typical_residual": 1e-3}
    terms |= {"summed": 1e-5, "canonical": 1e-15}
    with np.errstate(all="ignore"):
        assert np.isfinite(limit(fine, fine, 1e-3 * fine, *own, **terms)).all()
        assert np.isinf(limit(bad, fine, 1e-3 * fine, *own, **terms)).all()
        assert np.isinf(limit(fine, np.abs(bad), 1e-3 * fine, *own, **terms)).all()
        assert np.isinf(limit(fine, fine, np.abs(bad), *own, **terms)).all()
        assert np.isinf(limit(-fine, fine, 0 * fine, *own, **terms)).all()


@pytest.mark.parametrize("summed", [summation(16), 2.0**-9])
@pytest.mark.parametrize("usual", [0.2, 0.7, 3.0])
def test_distances_are_enclosed(summed, usual):
    """Whatever is left out works against the bounds, of centres beyond what is usual, too."""
    rng = np.random.default_rng(7)
    n, d, radius = 20_000, 6, 1.5
    shift = 0.5 * radius * radius
    y = unit_vectors(rng, n, d) * rng.uniform(0.0, 1.4, size=(n, 1))
    # Some centres are hardly apart from the row.
    near = (rng.random(n) < 0.3)[:, None]
    b = unit_vectors(rng, n, d) * rng.uniform(0.0, 2.5, size=(n, 1))
    b = np.where(near, y + 0.02 * b, b)
    toward = (y - b) / np.maximum(length(y - b), 1e-300)[:, None]
    rest, own_rest = rng.uniform(0.0, 0.02, size=n), rng.uniform(0.0, 0.05, size=n)
    norm, own_norm = length(y), length(b)
    usuals = {"typical_norm": usual, "typical_residual": 0.02, "summed": summed}
    low = score_bias(own_norm, own_rest, largest_residual=0.02, radius=radius, **usuals)
    score = own_norm**2 / 2 - (y * b).sum(axis=1) + shift - low
    off = (summed + LAST_STEP) * norm * own_norm + LAST_STEP * (own_norm**2 / 2 + shift)
    tight = []
    for e, f, nu in product((1, -1), repeat=3):
        x, c = y + (e * rest)[:, None] * toward, b + (f * own_rest)[:, None] * toward
        far = length(x - c)
        found = score + nu * off
        above = distance_above(
            found, norm, rest, own_norm, own_rest, low, shift=shift, summed=summed
        )
        below = distance_below(found, norm, norm, rest, shift=shift, **usuals)
        # The root of a difference of squares near 1, in float64.
        assert (above >= far - 1e-7).all()
        assert (below <= far + 1e-7).all()
        tight.append((np.min(above - far), np.min(far - below)))
    # And are met, nearly, where all is as bad as can be.
    assert min(a for a, _ in tight) < 1e-3
    assert min(b for _, b in tight) < 1e-3
