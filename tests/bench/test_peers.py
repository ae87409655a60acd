from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans, assign
from lloydia.bench import peers
from lloydia.bench.cases import Case
from lloydia.bench.peers import Task, ours

CASE = Case("", 4_000, 40, 12, "mixture")
EVERY = [
    peer
    for several in peers.everyone(["iterations", "fits", "seeding"]).values()
    for peer in several
]


@pytest.mark.parametrize("peer", EVERY, ids=lambda peer: peer.name)
def test_a_peer_does_what_it_is_asked(peer):
    if not peer.version():
        pytest.skip(f"{peer.package} is not installed")
    assert peer.refuses(CASE, peer.modes[0]) == ""
    X = CASE.rows()
    start = X[: CASE.k].copy()
    own = KMeans(CASE.k, init=start, n_init=1, max_iter=8, tol=0).fit(X)
    rows = X.astype(peer.dtype("float32"))
    fitted = peer.fit(rows, Task(CASE.k, start.astype(rows.dtype), 8, 0.0, 1))
    assert (rows == X).all()
    if fitted.centers is None:
        return
    assert fitted.centers.shape == own.cluster_centers_.shape
    inertia = assign(X, fitted.centers.astype(X.dtype))[1]
    if "seeding" in peer.modes:
        assert inertia < 3 * own.inertia_
        return
    assert fitted.n_iter == 8
    assert inertia / own.inertia_ == pytest.approx(1, rel=1e-4 if peer.takes_start else 0.2)
    if fitted.objective is not None:
        # What it adds up itself covers every row.
        assert inertia * 0.999 < fitted.objective < 1.5 * inertia


def test_faiss_does_as_many_iterations_as_it_is_told_to():
    pytest.importorskip("faiss")
    from lloydia.bench.peers.faiss import Faiss

    X = np.array([[0.0], [1.0], [9.0], [11.0]], dtype=np.float32)
    # It has converged after two.
    fitted = Faiss().fit(X, Task(2, X[:2], 20, 0.0, 1))
    assert fitted.n_iter == 20
    assert sorted(fitted.centers[:, 0]) == [0.5, 10.0]


def test_faiss_leaves_out_no_row():
    pytest.importorskip("faiss")
    from lloydia.bench.peers.faiss import Faiss

    X = np.random.default_rng(0).normal(size=(5_000, 3)).astype(np.float32)  # 2,500 a centre
    fitted = Faiss().fit(X, Task(2, X[:2], 1, 0.0, 1))
    assert fitted.objective == pytest.approx(assign(X, X[:2])[1], rel=1e-5)


def test_choose():
    found = peers.choose(["scikit-learn"], ["iterations", "fits"])
    names = [peer.name for several in found.values() for peer in several]
    assert names == [
        *("Lloydia auto", "Lloydia lloyd", "scikit-learn lloyd", "scikit-learn elkan", "gemm")
    ]
    with pytest.raises(ValueError, match="no library 'sklearn'"):
        peers.choose(["sklearn"], ["fits"])
    with pytest.raises(ImportError, match="missing is not installed; pip install no-such"):
        peers.choose(["missing"], ["fits"], [*peers.LIBRARIES, "fake_peers"])


def test_matrices_that_are_too_large_are_refused():
    elkan = next(peer for peer in EVERY if peer.name == "scikit-learn elkan")
    assert "4.0 GB" in elkan.refuses(Case("", 10**6, 2, 1000, "uniform"), "fits")


def test_filtering_is_not_asked_for_many_features():
    filtering = next(peer for peer in ours.PEERS if peer.name == "Lloydia filtering")
    assert filtering.refuses(Case("", 1000, 257, 8, "mixture"), "auto") == "at most 256 features"
    assert filtering.refuses(Case("", 1000, 256, 8, "mixture"), "auto") == ""
