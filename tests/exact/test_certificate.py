"""The error bound of float32 scores, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydia.exact import certificate, distance
from nasty import nasty_rows


def exact_scores(X: np.ndarray, C: np.ndarray) -> list[list[Fraction]]:
    origin, scale = certificate.frame(C)
    m, s = [Fraction(float(v)) for v in origin], Fraction(scale)

    def framed(rows):
        return [[(Fraction(float(v)) - o) * s for v, o in zip(row, m)] for row in rows]

    x, c = framed(X), framed(C)
    return [
        [sum(a * b for a, b in zip(row, col)) - sum(b * b for b in col) / 2 for col in c]
        for row in x
    ]


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
    C = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=2, max_size=6))]
    C = C + (np.abs(C) * np.finfo(C.dtype).eps * data.draw(st.sampled_from([0, 1, 8]))).astype(
        C.dtype
    )
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
    a, b = certificate.near_line(X.shape[1], 1.0, scale)
    for i, row in enumerate(exact_scores(X, C)):
        for j, true in enumerate(row if np.isfinite(bound[i]) else []):
            radius, own = (float(r) * (1 + 2.0**-40) for r in (radii[0][i], radii[1][j]))
            rho = max(radius, own)
            error = Fraction(float(scores[i, j])) - true
            assert abs(error) <= Fraction(a + b * rho * (radius + rho))


def test_near_centres_are_not_certified_where_none_are():
    assert np.isinf(certificate.near_line(3, 2.0**41, 1.0)).all()
    assert np.isinf(certificate.near_line(2**21, 1.0, 1.0)).all()
