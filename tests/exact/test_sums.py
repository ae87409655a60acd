"""Sums and means against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydia.exact import sums
from lloydia.exact.means import means
from nasty import FLAVOURS, nasty_rows, nasty_weights, rows_of


def unit_in_last_place(value: Fraction, dtype: np.dtype) -> Fraction:
    """Return the ulp of a non-negative rational in a floating-point type."""
    info = np.finfo(dtype)
    if value == 0:
        return Fraction(0)
    exponent = math.floor(math.log2(value)) if value > Fraction(2) ** -900 else -2000
    while Fraction(2) ** (exponent + 1) <= value:
        exponent += 1
    while Fraction(2) ** exponent > value:
        exponent -= 1
    return Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))


def check_means(X: np.ndarray, weights: np.ndarray | None, labels: np.ndarray, k: int) -> None:
    """Assert that every mean is within one ulp of the mean magnitude of its feature."""
    magnitudes = sums.Magnitudes.of(X, weights)
    grid = sums.Grid.choose(magnitudes, X.dtype)
    totals = sums.accumulate(sums.limbs(X, weights, grid), labels, k)
    centers = means(totals, grid, X.dtype)
    assert centers.dtype == X.dtype
    w = [Fraction(1)] * len(X) if weights is None else [Fraction(float(v)) for v in weights]
    for j in range(k):
        rows = [i for i in range(len(X)) if labels[i] == j]
        weight = sum((w[i] for i in rows), Fraction(0))
        if weight == 0:
            assert np.isnan(centers[j]).all()
            continue
        for f in range(X.shape[1]):
            values = [w[i] * Fraction(float(X[i, f])) for i in rows]
            mean = sum(values, Fraction(0)) / weight
            magnitude = sum(map(abs, values), Fraction(0)) / weight
            error = abs(Fraction(float(centers[j, f])) - mean)
            assert error <= unit_in_last_place(magnitude, X.dtype)


@given(nasty_rows(), st.data())
@settings(deadline=None, max_examples=400)
def test_means_are_within_one_ulp(X, data):
    k = data.draw(st.integers(1, 4))
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(X), max_size=len(X))))
    check_means(X, data.draw(nasty_weights(len(X))), labels, k)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_thousands_of_rows(flavour, dtype, weighted):
    X = rows_of(flavour, 3000, 2, dtype, seed=7)
    rng = np.random.default_rng(0)
    weights = 10.0 ** rng.uniform(-8, 8, size=3000) if weighted else None
    check_means(X, weights, rng.integers(0, 5, size=3000), 5)


def test_a_weighted_row_alone_is_its_own_mean():
    # fl(w * x) / w would be off by up to one and a half units in the last place.
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, size=(2000, 1))
    weights = rng.uniform(0.5, 2.0, size=2000)
    check_means(X, weights, np.arange(2000), 2000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_mean_of_equal_rows_is_the_row(dtype):
    rng = np.random.default_rng(1)
    row = (rng.normal(size=(1, 6)) * 10.0 ** rng.uniform(-6, 6, size=6)).astype(dtype)
    for n in (1, 3, 7, 1000):
        X = np.repeat(row, n, axis=0)
        grid = sums.Grid.choose(sums.Magnitudes.of(X), X.dtype)
        totals = sums.accumulate(sums.limbs(X, None, grid), np.zeros(n, dtype=int), 1)
        assert (means(totals, grid, X.dtype) == row).all()


@given(nasty_rows(), st.data())
@settings(deadline=None, max_examples=100)
def test_parts_and_moves_add_up_exactly(X, data):
    weights = data.draw(nasty_weights(len(X)))
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X))))
    moved = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X))))
    cut = data.draw(st.integers(0, len(X)))
    parts = [slice(0, cut), slice(cut, None)]
    found = [
        sums.Magnitudes.of(X[p], None if weights is None else weights[p])
        for p in parts
        if len(X[p])
    ]
    whole = found[0] if len(found) == 1 else found[0].merge(found[1])
    grid = sums.Grid.choose(whole, X.dtype)
    direct = sums.Grid.choose(sums.Magnitudes.of(X, weights), X.dtype)
    assert (grid.bits, grid.n_limbs) == (direct.bits, direct.n_limbs)
    values = sums.limbs(X, weights, grid)
    total = sums.accumulate(values, labels, 3)
    split = sum(sums.accumulate(values[:, p], labels[p], 3) for p in parts)
    assert (total == split).all()
    changed = labels != moved
    delta = sums.accumulate(values[:, changed], moved[changed], 3)
    delta -= sums.accumulate(values[:, changed], labels[changed], 3)
    assert (total + delta == sums.accumulate(values, moved, 3)).all()


def test_limbs_cannot_overflow():
    for n in (1, 2, 3, 1000, 10**6 + 1, 2**40):
        bits = sums.bits_a_limb(n)
        assert n * 2**bits <= 2**62
        assert bits <= 51


def test_ordinary_float32_data_need_two_limbs_at_most():
    X = np.random.default_rng(0).normal(size=(20_000, 8)).astype(np.float32)
    grid = sums.Grid.choose(sums.Magnitudes.of(X), X.dtype)
    assert grid.n_limbs <= 2
    beyond = (sums.limbs(X, None, grid)[1:] != 0).any(axis=(0, 2)).mean()
    assert beyond < 0.01


@given(
    st.lists(st.floats(0, 1e300), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_total_is_accurate_and_has_no_order(values, random):
    exact = sum(map(Fraction, values), Fraction(0))
    total = sums.total(np.array(values))
    assert abs(Fraction(total) - exact) <= exact * Fraction(2) ** -52
    random.shuffle(values)
    assert sums.total(np.array(values)) == total


@pytest.mark.parametrize(("m", "bound"), [(11, -142), (31, -62), (33, -54), (40, -26)])
def test_how_far_a_total_of_many_values_may_be_off(m, bound):
    n = 2**m
    bits, exponent = sums.total_grid(n, 1.0)
    last = Fraction(2) ** (exponent - 3 * bits)

    def cut(value):
        limbs = sums.total_limbs(np.array([value]), bits, exponent)
        assert (n - 1) * max(map(abs, limbs)) < 2**63
        return sum(limb * last * 2 ** (bits * (2 - i)) for i, limb in enumerate(limbs))

    # The worst there is: one value on a power of two, all others just below half the last place.
    least = float(last) / 2 * (1 - 2**-53)
    exact = 1 + (n - 1) * Fraction(least)
    error = (exact - cut(1.0) - (n - 1) * cut(least)) / exact
    assert Fraction(2) ** bound * Fraction(9, 10) < error <= Fraction(2) ** bound
    # From 52 places above the last one on nothing is lost.
    assert cut(value := float(last) * 2**52 * (1 + 2**-52)) == Fraction(value)


def test_fraction_of_is_exact():
    total = 2**61 + 12345
    assert sums.fraction_of(0.0, total) == 0
    assert sums.fraction_of(1 - 2.0**-53, total) == ((2**53 - 1) * total) >> 53
    assert sums.fraction_of(0.5, total) == total // 2
