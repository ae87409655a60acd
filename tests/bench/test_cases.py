from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lloydia.bench import cases

TABLE = cases.table()


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_every_case_is_what_it_says(case):
    few = replace(case, n=min(case.n, 5_000 + case.k))
    X = few.rows()
    assert X.shape == (few.n, case.d)
    assert X.dtype == case.dtype
    assert np.isfinite(X).all()
    assert (few.rows() == X).all()
    assert set(case.modes) <= set(cases.MODES)
    start = cases.start(few, X)
    if case.defaults:
        assert start is None
    else:
        assert start.shape == (case.k, case.d)
        assert start.dtype == X.dtype
        assert len(np.unique(start, axis=0)) == case.k


def test_the_names_are_shapes_and_differ():
    assert len({case.name for case in TABLE}) == len(TABLE)
    sizes = {"1M": 1_000_000, "10M": 10_000_000, "500k": 500_000}
    sizes |= {"100k": 100_000, "200k": 200_000}
    for case in TABLE:
        if case.kind in ("mixture", "uniform", "pixels"):
            n, d, k, *rest = case.name.removeprefix("seed ").split(",")
            assert (sizes[n], int(d), int(k)) == (case.n, case.d, case.k)
            assert (case.dtype == "float64") == (rest == ["f64"])


def test_pixels_are_integers():
    X = replace(next(case for case in TABLE if case.kind == "pixels"), n=100_000).rows()
    assert (np.rint(X) == X).all()
    assert X.min() >= 0
    assert X.max() <= 255


def test_blobs_overlap_as_the_table_says():
    rng_case = cases.Case("", 20_000, 64, 50, "mixture")
    X = rng_case.rows().astype(float)
    # Noise and centres have variances of 1 and 16 / d.
    assert X.var(axis=0).mean() == pytest.approx(1 + 16 / 64, rel=0.1)


def test_a_tenth():
    assert cases.Case("", 100_000, 2, 2, "mixture").tenth().n == 10_000
    assert cases.Case("", 150, 2, 2, "iris").tenth().n == 150


def test_choose():
    assert [case.name for case in cases.choose(["iris"], ["fits"])] == ["iris"]
    assert all("seeding" in case.modes for case in cases.choose(None, ["seeding"]))
    with pytest.raises(ValueError, match="no case 'iris'"):
        cases.choose(["iris"], ["seeding"])
