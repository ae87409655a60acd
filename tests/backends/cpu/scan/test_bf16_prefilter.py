"""The bfloat16 prefilter: rows that it certifies are right, and it leaves the others."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cpu.rows.features import EVERY
from lloydia.backends.cpu.scan import bf16_prefilter, scanners, tile_scores
from lloydia.backends.cpu.scan.centers import pack
from lloydia.exact.distance import squared_distances
from nasty import FLAVOURS, rows_of

pytestmark = pytest.mark.skipif(
    not tile_scores.AVAILABLE, reason="this processor multiplies no pairs of bfloat16"
)


def straight(task, cost, n):
    task(0, 0, n)


def scanned(X, centers, rows=EVERY, bounds=True):
    """Return (labels, best, second, whether certified) of the listed rows."""
    p = pack(centers, True, straight)
    n, d = len(rows) if len(rows) else len(X), X.shape[1]
    labels, left = np.full(n, -1, np.int32), np.empty(n, np.int64)
    best, second = np.full((2, n if bounds else 0), np.nan)
    far, *_, lines = p.errors
    m, tried = bf16_prefilter.prefilter_rows(
        X,
        rows,
        0,
        n,
        p.tiles,
        tile_scores.head_pairs_of(d),
        p.frame,
        far,
        lines,
        labels,
        best,
        second,
        left,
    )
    assert (np.diff(left[:m]) > 0).all()
    assert n - tried <= m
    certified = np.ones(n, dtype=bool)
    certified[left[:m]] = False
    return labels, best, second, certified


def check(X, centers, found):
    labels, best, second, certified = found
    D = squared_distances(X, centers)
    assert (labels[certified] == D.argmin(axis=1)[certified]).all()
    if len(best):
        own = np.take_along_axis(D, D.argmin(axis=1)[:, None], axis=1)[:, 0]
        D[np.arange(len(D)), D.argmin(axis=1)] = np.inf
        assert (best[certified] >= own[certified] * (1 - 1e-12)).all()
        assert (second[certified] <= D.min(axis=1)[certified] * (1 + 1e-12)).all()
    return certified.mean()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(
    "d", [d for d in (24, 30, 31, 32, 64, 95, 130) if d >= tile_scores.PREFILTER_FEATURES]
)
def test_what_is_certified_is_nearest(flavour, dtype, d):
    X = rows_of(flavour, 300, d, dtype, seed=d)
    for k in (2, 15, 33, 100):
        check(X[k:], X[:k], scanned(X[k:], X[:k]))


def test_most_rows_of_ordinary_data_are_certified():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(50, 128)).astype(np.float32)
    X = centers[rng.integers(50, size=2000)] + rng.normal(size=(2000, 128), scale=0.7)
    X = X.astype(np.float32)
    assert check(X, centers, scanned(X, centers)) > 0.98
    # One centre far away costs its neighbours their certificates, not all rows.
    centers[7] *= 20
    assert check(X, centers, scanned(X, centers)) > 0.95


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_centres_very_far_away_cost_few_rows_their_certificates(far, dtype):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(50, 128)).astype(dtype)
    X = (centers[rng.integers(50, size=2000)] + rng.normal(size=(2000, 128), scale=0.7)).astype(
        dtype
    )
    centers[::10] *= np.array(far, dtype=dtype)
    near = squared_distances(X, centers).min(axis=1) < 200
    for bounds in (True, False):
        found = scanned(X, centers, bounds=bounds)
        check(X, centers, found)
        assert found[-1][near].mean() > 0.95
    _, best, second, certified = scanned(X, centers)
    D = np.sort(squared_distances(X, centers), axis=1)
    assert (best < 1.3 * D[:, 0])[certified & near].all()
    assert (second > 0.7 * D[:, 1])[certified & near].all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_that_lose_products_are_not_trusted_beside_a_centre_far_away(dtype):
    # As all of bfloat16, nothing is left out; products less than half a unit of the sum they join.
    d = 1000
    d = max(d, tile_scores.PREFILTER_FEATURES)
    centers = np.zeros((34, d))
    centers[:2, 1] = 2.0**6, -(2.0**6)
    centers[2:, 0] = 1.0
    centers[18:] *= -1.0
    # The last of each half is the nearest to rows that point its way by what its sum loses.
    centers[17, 1:], centers[33, 1:] = 2.0**-12, 2.0**-12
    X = np.zeros((400, d))
    X[:, 0] = np.repeat([1.0, -1.0], 200)
    X[:, 1:] = 2.0 ** -np.linspace(9, 16, 400)[np.random.default_rng(0).permutation(400), None]
    check(X.astype(dtype), centers.astype(dtype), scanned(X.astype(dtype), centers.astype(dtype)))


@pytest.mark.parametrize("spread", [2.0**-6, 2.0**-8, 2.0**-9, 2.0**-11, 2.0**-20, 0.0])
def test_centres_that_bfloat16_cannot_tell_apart_are_left(spread):
    # Rows and centres halfway between bfloat16 numbers, all errors of one sign.
    rng = np.random.default_rng(1)
    centers = np.full((34, 64), 1.0 + 2.0**-8, np.float32)
    centers[17:] *= -1
    centers += spread * rng.choice([-1.0, 0.0, 1.0], size=centers.shape).astype(np.float32)
    X = np.concatenate([centers, 3 * centers]) * np.float32(1 + 2.0**-8)
    X = np.repeat(X, 3, axis=0)
    check(X, centers, scanned(X, centers))


def test_a_list_of_rows_and_no_bounds():
    X = rows_of("gauss", 900, 70, "float32", seed=3)
    rows = np.random.default_rng(0).permutation(900)[:500]
    labels, best, second, certified = scanned(X, X[:40], rows)
    check(X[rows], X[:40], (labels, best, second, certified))
    plain = scanned(X, X[:40], rows, bounds=False)
    assert (plain[0] == labels).all()
    assert (plain[3] == certified).all()


def test_blocks_are_left_out_where_too_many_rows_are_ambiguous():
    # All rows are in doubt, so that all blocks but a few are not even looked at.
    X = np.repeat(rows_of("gauss", 30, 64, "float32", seed=5), 1000, axis=0)
    labels, _, _, certified = scanned(X, np.concatenate([X[::1000], X[::1000]]), bounds=False)
    assert not certified.any()
    assert (labels == -1).mean() > 0.5


def with_hard_blocks(blocks):
    """Return (X, centers): twelve blocks of rows, those listed with two equal centres nearest."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(100, 64)).astype(np.float32)
    size = 16 * bf16_prefilter.PAIR
    names = rng.integers(98, size=(12, size))
    names[blocks] = 98
    centers[99] = centers[98]
    return centers[names.ravel()], centers


def test_an_ambiguous_block_costs_no_more_than_the_next():
    X, centers = with_hard_blocks([1, 7])
    labels, _, _, certified = scanned(X, centers, bounds=False)
    of_block = labels.reshape(12, -1)
    assert [b for b in range(12) if (of_block[b] == -1).all()] == [2, 8]
    assert [b for b in range(12) if not certified.reshape(12, -1)[b].any()] == [1, 2, 7, 8]


def test_scattered_ambiguous_blocks_do_not_switch_it_off():
    X, centers = with_hard_blocks([1, 7])
    n, p, prefilter = len(X), pack(centers, True, straight), scanners.Bf16Prefilter()
    whole = scanners.full_scanner(X, p, tile_scores.AMX)
    labels = np.empty(n, np.int32)
    none = np.empty(0)
    scanners.prefiltered_scanner(X, p, whole, prefilter)(EVERY, 0, n, labels, none, none)
    assert (labels == squared_distances(X, centers).argmin(axis=1)).all()
    # The rows that were left out untried say nothing.
    assert prefilter.counts == [(n * 10 // 12, n * 2 // 12)]
    assert prefilter.useful()
