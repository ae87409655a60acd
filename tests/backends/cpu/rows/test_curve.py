"""The order along the Hilbert curve, against the curve's own properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lloydia.backends.cpu.rows.curve import STRIP, curve_order, frame, positions
from lloydia.backends.cpu.rows.dataset import Dataset
from nasty import FLAVOURS, rows_of


def order_of(X, n_threads=1):
    return curve_order(X, Dataset(X, None, n_threads).each_block)


@pytest.mark.parametrize(("d", "bits"), [(1, 5), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2)])
def test_the_curve_visits_every_cell_and_steps_to_neighbours_only(d, bits):
    cells = np.array(list(itertools.product(range(2**bits), repeat=d)), dtype=np.float64)
    keys = np.empty(len(cells), np.uint64)
    scratch = np.zeros((d, STRIP), np.uint32), np.empty(STRIP, np.uint32)
    positions(cells, 0, len(cells), np.zeros(d), 1.0, bits, keys, *scratch)
    assert (np.sort(keys) == np.arange(len(cells))).all()
    steps = np.abs(np.diff(cells[np.argsort(keys)], axis=0))
    assert (steps.sum(axis=1) == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_row_is_there_once_on_any_number_of_threads(flavour, dtype, monkeypatch):
    monkeypatch.setattr(Dataset, "block", lambda self, cost, n=None: 41)
    for n, d in ((1, 1), (64, 2), (1000, 3), (300, 9), (100, 70)):
        X = rows_of(flavour, n, d, dtype, seed=n)
        order = order_of(X)
        assert (np.sort(order) == np.arange(n)).all()
        assert (order_of(X, 3) == order).all()


def test_equal_positions_stay_in_the_order_of_the_rows():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 50, axis=0)[::-1].copy()
    order = order_of(X)
    assert (np.diff(order.reshape(5, 50)) == 1).all()


def test_a_row_far_away_does_not_widen_the_steps():
    X = np.random.default_rng(0).uniform(size=(5000, 2))
    X[17] = 1e140
    low, inverse = frame(X, 16)
    assert (low > 0).all()
    assert (low < 0.02).all()
    assert 1.0 < inverse / 2.0**16 < 1.05
    near = X[order_of(X)].reshape(-1, 50, 2)[:-1]
    assert np.median(np.ptp(near, axis=1)) < 0.2
