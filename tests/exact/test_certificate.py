"""The error bound of float32 scores, against exact rational arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lloydia.exact import certificate, distance
from nasty import nasty_rows


def in_frame(X: np.ndarray, C: np.ndarray) -> tuple[list[list[Fraction]], ...]:
    origin, scale = certificate.frame(C)
    m, s = [Fraction(float(v)) for v in origin], Fraction(scale)

    def framed(rows):
        return [[(Fraction(float(v)) - o) * s for v, o in zip(row, m)] for row in rows]

    return framed(X), framed(C)


def exact_scores(X: np.ndarray, C: np.ndarray) -> list[list[Fraction]]:
    x, c = in_frame(X, C)
    return [
        [sum(a * b for a, b in zip(row, col)) - sum(b * b for b in col) / 2 for col in c]
        for row in x
    ]


def almost_rows(X: np.ndarray, data: st.DataObject) -> np.ndarray:
    """Return centres that are rows, or next to them."""
    C = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=2, max_size=6))]
    steps = data.draw(st.sampled_from([0, 1, 8]))
    return C + (np.abs(C) * np.finfo(C.dtype).eps * steps).astype(C.dtype)


@given(nasty_rows(most=15), st.data())
@settings(deadline=None, max_examples=200)
def test_scores_are_within_the_bound(X, data):
    C = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=5))]
    with np.errstate(all="ignore"):
        scores, bound = certificate.scores(X, C)
    for i, row in enumerate(exact_scores(X, C)):
        if np.isfinite(bound[i]):
            for j, true in enumerate(row):
                assert abs(Fraction(float(scores[i, j])) - true) <= Fraction(float(bound[i]))


@given(nasty_rows(most=30), st.data())
@settings(deadline=None, max_examples=200)
def test_a_certified_label_is_the_canonical_one(X, data):
    C = almost_rows(X, data)
    with np.errstate(all="ignore"):
        scores, bound = certificate.scores(X, C)
        ordered = np.sort(scores.astype(np.float64), axis=1)
        certain = ordered[:, -1] - ordered[:, -2] > 2 * bound
    labels, _ = distance.nearest(X, C)
    assert (scores.argmax(axis=1)[certain] == labels[certain]).all()


def test_the_certificate_is_sharp_enough_to_be_useful():
    rng = np.random.default_rng(0)
    for offset in (0.0, 1e4):
        X = (rng.normal(size=(5000, 32)) + offset).astype(np.float32)
        scores, bound = certificate.scores(X, X[:100])
        ordered = np.sort(scores.astype(np.float64), axis=1)
        doubtful = (ordered[:, -1] - ordered[:, -2] <= 2 * bound).mean()
        assert doubtful < 0.005


def test_centres_far_away_leave_few_rows_in_doubt():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 32)).astype(np.float32)
    for far in (1e3, 1e7, 1e12):
        C = X[:100].copy()
        C[::3] *= far
        origin, scale = certificate.frame(C)
        scores, _ = certificate.scores(X, C)
        line = certificate.near_line(32, 1.0, scale)
        squares = np.square((X.astype(np.float64) - origin) * scale).sum(axis=1) * (1 + 2.0**-40)
        second, best = np.sort(scores.astype(np.float64), axis=1)[:, -2:].T
        errors = [certificate.near_error(*pair, line) for pair in zip(squares, best)]
        assert (best - second <= 2 * np.array(errors)).mean() < 0.005


def test_ties_are_never_certified():
    X = np.zeros((1, 3), dtype=np.float32)
    C = np.array([[1, 0, 0], [0, 1, 0], [0, 0, -1]], dtype=np.float32)
    scores, bound = certificate.scores(X, C)
    ordered = np.sort(scores.astype(np.float64), axis=1)
    assert not (ordered[:, -1] - ordered[:, -2] > 2 * bound).any()


def test_rows_whose_squares_underflow_are_never_certified_wrongly():
    """Their D are 0 or subnormal: the canonical label is the lowest of the ties."""
    for exponent in range(-175, -145, 3):
        X = np.random.default_rng(0).normal(size=(200, 12)) * 10.0**exponent
        scores, bound = certificate.scores(X, X[:5])
        ordered = np.sort(scores.astype(np.float64), axis=1)
        certain = ordered[:, -1] - ordered[:, -2] > 2 * bound
        labels, _ = distance.nearest(X, X[:5])
        assert (scores.argmax(axis=1)[certain] == labels[certain]).all()


def test_far_rows_are_never_certified():
    assert np.isinf(certificate.score_error(3, np.array([2.0**41]), 1.0, 1.0)).all()
    assert np.isinf(certificate.score_error(3, np.array([1.0]), 2.0**41, 1.0)).all()


@given(nasty_rows(most=15), st.data())
@settings(deadline=None, max_examples=200)
def test_errors_of_near_centres_are_within_their_own_bound(X, data):
    C = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=5))]
    origin, scale = certificate.frame(C)
    with np.errstate(all="ignore"):
        scores, bound = certificate.scores(X, C)
        radii = [np.linalg.norm((A.astype(np.float64) - origin) * scale, axis=1) for A in (X, C)]
    a, b, _, _ = certificate.near_line(X.shape[1], 1.0, scale)
    for i, row in enumerate(exact_scores(X, C)):
        for j, true in enumerate(row if np.isfinite(bound[i]) else []):
            radius, own = (float(r) * (1 + 2.0**-40) for r in (radii[0][i], radii[1][j]))
            rho = max(radius, own)
            error = Fraction(float(scores[i, j])) - true
            assert abs(error) <= Fraction(a + b * rho * (radius + rho))


@given(nasty_rows(most=15), st.data())
@settings(deadline=None, max_examples=200)
def test_scores_bound_distances_whatever_the_farthest_centre_is(X, data):
    C = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=5))]
    _, scale = certificate.frame(C)
    with np.errstate(all="ignore"):
        scores, bound = certificate.scores(X, C)
    line = certificate.near_line(X.shape[1], 1.0, scale)
    rows, centers = in_frame(X, C)
    for i, x in enumerate(rows):
        square = sum(v * v for v in x)
        D = [sum((v - w) ** 2 for v, w in zip(x, c)) for c in centers]
        radius = float(square) * (1 + 2.0**-40)
        for score in scores[i].astype(np.float64) if np.isfinite(bound[i]) else []:
            error = 2 * Fraction(float(certificate.near_error(radius, score, line)))
            middle = square - 2 * Fraction(float(score))
            of_least = [E for E, other in zip(D, scores[i]) if other <= score]
            assert min(of_least) >= middle - error
            of_same = [E for E, other in zip(D, scores[i]) if other == score]
            assert max(of_same) <= Fraction(radius) - 2 * Fraction(float(score)) + error


@given(nasty_rows(most=30), st.data())
@settings(deadline=None, max_examples=200)
def test_a_label_certified_by_near_centres_is_the_canonical_one(X, data):
    C = almost_rows(X, data)
    # One may be far away.
    with np.errstate(over="ignore"):
        C[-1] *= data.draw(st.sampled_from([1.0, 1e3, 1e6]))
    assume(np.isfinite(C).all())
    origin, scale = certificate.frame(C)
    with np.errstate(all="ignore"):
        scores, bound = certificate.scores(X, C)
    line = certificate.near_line(X.shape[1], 1.0, scale)
    labels, _ = distance.nearest(X, C)
    for i, row in enumerate(scores.astype(np.float64)):
        if np.isfinite(bound[i]):
            radius = np.linalg.norm((X[i].astype(np.float64) - origin) * scale) * (1 + 2.0**-40)
            second, best = np.sort(row)[-2:]
            if best - second > 2 * certificate.near_error(radius * radius, best, line):
                assert row.argmax() == labels[i]


@pytest.mark.parametrize("d", [1, 3, 100, 2**14, 2**19, 2**20 - 2**18])
def test_a_score_as_wrong_as_can_be_still_bounds_its_own_error(d):
    line = certificate.near_line(d, 1.0, 1.0)
    lengths = [0.0, *np.ldexp(1.0, range(-70, 30)), *np.linspace(0.5, 3.0, 40)]
    for radius, away in itertools.product(lengths, lengths):
        # No centre at this distance from the row has a larger norm, or a larger score.
        error = float(certificate.score_error(d, radius, radius + away, 1.0))
        score = 0.5 * (radius**2 - away**2) + error
        assert certificate.near_error(radius**2, score, line) >= error
        # Where leading parts are added up it is a little more.
        more = error * (1.0 + 2.0**-5)
        score, of_leading = score + more - error, certificate.bf16_head_near(line)
        assert certificate.near_error(radius**2, score, of_leading) >= more


@given(nasty_rows(most=15), st.data())
@settings(deadline=None, max_examples=200)
def test_a_score_bounds_the_distance_of_its_own_centre(X, data):
    C = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=5))]
    _, scale = certificate.frame(C)
    with np.errstate(all="ignore"):
        scores, bound = certificate.scores(X, C)
    (a, b, c), (low, high) = certificate.single_terms(X.shape[1], 1.0, scale)
    assert b == 0.0
    rows, centers = in_frame(X, C)
    for i, x in enumerate(rows if np.isfinite(a) else []):
        square = sum(v * v for v in x)
        twice = 2 * (Fraction(a) + Fraction(c) * square)
        for j, center in enumerate(centers if np.isfinite(bound[i]) else []):
            D = sum((v - w) ** 2 for v, w in zip(x, center))
            middle = square - 2 * Fraction(float(scores[i, j]))
            assert (
                (middle - twice) * Fraction(low) ** 2 <= D <= (middle + twice) * Fraction(high) ** 2
            )


@pytest.mark.parametrize("d", [1, 3, 100, 2**14, 2**19, 2**20 - 2**18])
def test_scores_as_wrong_as_can_be_still_bound_the_distances_of_their_own_centres(d):
    (a, _, c), (low, high) = certificate.single_terms(d, 1.0, 1.0)
    lengths = [0.0, *np.ldexp(1.0, range(-50, 30)), *np.linspace(0.5, 3.0, 40)]
    for radius, away in itertools.product(lengths, lengths):
        # No centre at this distance from the row has a larger norm.  D is not rounded.
        error = float(certificate.score_error(d, radius, radius + away, 1.0)) * (1 - 2.0**-24)
        score, off = 0.5 * (radius**2 - away**2), a + c * radius**2
        slack = 2.0**-50 * (radius + away) ** 2
        least = radius**2 - 2.0 * (score - error) - 2.0 * off - slack
        most = radius**2 - 2.0 * (score + error) + 2.0 * off + slack
        assert least * low**2 <= away**2 <= most * high**2


def test_near_centres_are_not_certified_where_none_are():
    for d, reach in ((3, 2.0**41), (2**21, 1.0)):
        assert np.isinf(certificate.near_line(d, reach, 1.0)).all()
        assert certificate.single_terms(d, reach, 1.0) == ((np.inf,) * 3, (0.0, np.inf))


def test_the_line_bounds_the_error_terms():
    for reach in (0.0, 1e-3, 1.0, 30.0):
        a, b, c = certificate.error_terms(20, reach, 1.0, depth=12, index_bits=4)
        low, slope, _ = certificate.error_line(20, reach, 1.0, depth=12, index_bits=4)
        for R in (0.0, 1e-3, 0.5, 1.0, 7.0, 1e4):
            assert low + slope * R * R >= a + b * R + c * R * R
