"""The choice of a scan: with the bfloat16 prefilter only while it certifies rows."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.backends.cpu.scan import scanners, tile_scores
from lloydia.estimators.functions import assign
from nasty import FLAVOURS, rows_of

pytestmark = pytest.mark.skipif(
    not tile_scores.AVAILABLE, reason="this processor multiplies no pairs of bfloat16"
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [64, 129])
def test_with_and_without_the_prefilter_the_bits_are_the_same(d, dtype, monkeypatch):
    for flavour in FLAVOURS:
        X = rows_of(flavour, 400, d, dtype, seed=d)
        oracle = assign(X, X[:40], device="reference")
        for ample in (0, 10**9):
            monkeypatch.setattr(scanners, "PREFILTER_NUMBERS", ample)
            monkeypatch.setattr(scanners, "TILED_CENTERS", 1)
            labels, inertia = assign(X, X[:40])
            assert (labels == oracle[0]).all(), (flavour, ample)
            assert inertia == oracle[1]


def test_scans_go_without_the_prefilter_where_it_certified_less_than_half():
    prefilter = scanners.Bf16Prefilter()
    assert prefilter.useful()
    prefilter.counts += [(100, 40), (100, 60)]
    assert prefilter.useful()
    prefilter.counts += [(100, 99), (100, 2)]
    assert [prefilter.useful() for _ in range(scanners.IDLE + 2)] == [False] * scanners.IDLE + [
        True,
        True,
    ]


def test_an_engine_goes_without_the_prefilter_while_it_certifies_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    # Differences that bfloat16 does not hold, within heaps that are all away from the origin.
    heaps = rng.standard_normal((3, 64))[np.arange(4000) % 3]
    X = (heaps + 2.0**-12 * rng.standard_normal((4000, 64))).astype(np.float32)
    scans = []
    original = scanners.prefiltered_scanner

    def counted(*args):
        scans.append(args)
        return original(*args)

    monkeypatch.setattr(scanners, "prefiltered_scanner", counted)
    monkeypatch.setattr(scanners, "IDLE", 3)
    of = {"n_clusters": 100, "init": X[:100], "n_init": 1, "max_iter": 7, "tol": 0.0}
    found = KMeans(**of, algorithm="lloyd", n_threads=1).fit(X)
    # Of all seven and the last assignment, one of each four.
    assert found.n_iter_ == 7
    assert len(scans) == 2
    right = KMeans(**of, device="reference").fit(X)
    assert (found.labels_ == right.labels_).all()
    assert found.inertia_ == right.inertia_
