from __future__ import annotations

import numpy as np
import pytest

from lloydia import KMeans
from lloydia.loop import empty

# Two groups on a line and a third centre so far away that no row is nearest to it.
X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [18.0]])
START = np.array([[1.0], [11.0], [1000.0]])


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_relocate_takes_the_farthest_row(device):
    model = KMeans(3, init=START, max_iter=1, device=device).fit(X)
    # Row 5 (D = 49) goes to cluster 2, whose old cluster loses it.
    assert model.cluster_centers_.ravel().tolist() == [1.0, 10.5, 18.0]
    assert model.labels_.tolist() == [0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_keep_leaves_the_centre(device):
    model = KMeans(3, init=START, empty="keep", device=device)
    with pytest.warns(match="distinct clusters"):
        model.fit(X)
    assert model.cluster_centers_.ravel().tolist() == [1.0, 13.0, 1000.0]
    assert set(model.labels_) == {0, 1}


def test_error_names_the_cluster():
    with pytest.raises(empty.EmptyClusterError, match="Cluster 2 has no points after iteration 1"):
        KMeans(3, init=START, empty="error").fit(X)


def test_ties_go_to_the_lowest_row():
    rows = np.array([[-5.0], [0.0], [5.0], [100.0]])
    model = KMeans(3, init=[[0.0], [100.0], [500.0]], max_iter=1).fit(rows)
    assert model.cluster_centers_.ravel().tolist() == [2.5, 100.0, -5.0]


def test_the_only_row_of_a_cluster_is_never_taken():
    # Row 2 is farthest from its centre but alone; row 0 is next.
    rows = np.array([[0.0], [3.0], [60.0]])
    model = KMeans(3, init=[[1.0], [50.0], [900.0]], max_iter=1).fit(rows)
    assert model.cluster_centers_.ravel().tolist() == [0.0, 60.0, 3.0]


def test_rows_of_weight_zero_are_never_taken():
    weights = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    model = KMeans(3, init=START, max_iter=1).fit(X, sample_weight=weights)
    assert model.cluster_centers_[2, 0] != 18.0
    assert 18.0 not in model.cluster_centers_


def test_a_cluster_of_zero_weight_rows_counts_as_empty():
    rows = np.array([[0.0], [1.0], [4.0], [50.0]])
    model = KMeans(2, init=[[1.0], [50.0]], max_iter=1).fit(rows, sample_weight=[1, 1, 1, 0])
    assert model.cluster_centers_.ravel().tolist() == [0.5, 4.0]


@pytest.mark.parametrize("algorithm", ["lloyd", "elkan", "hamerly"])
def test_fewer_distinct_rows_than_clusters_warns_and_ends(algorithm):
    rows = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    for init in ("k-means++", "random", "first", "farthest", "k-means||"):
        model = KMeans(
            5, init=init, algorithm=algorithm, n_init=1, random_state=0, tol=0, max_iter=10**6
        )
        with pytest.warns(
            match=r"Number of distinct clusters \(\d\) found smaller than n_clusters"
        ):
            model.fit(rows)
        assert model.n_iter_ < 10
        assert (model.labels_ == model.predict(rows)).all()


def test_labels_are_those_of_predict_after_a_relocation():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2))
    start = np.vstack([rows[:4], np.full((3, 2), 1e3)])
    for max_iter in range(1, 8):
        model = KMeans(7, init=start, max_iter=max_iter).fit(rows)
        assert (model.labels_ == model.predict(rows)).all()


def test_more_donors_are_asked_for_when_the_farthest_are_alone():
    class Few:
        def counts(self):
            return np.array([1, 1, 1, 5])

        def farthest(self, count):
            rows, D = np.arange(8), np.arange(8, 0, -1.0)
            labels = np.array([0, 1, 2, 3, 3, 3, 3, 3])
            return rows[:count], D[:count], labels[:count]

    class AtTheirCentres(Few):
        def farthest(self, count):
            rows, D, labels = super().farthest(count)
            return rows, D * (rows < 4), labels

    assert empty.donors(AtTheirCentres(), 3).tolist() == [3]
    assert empty.donors(Few(), 2).tolist() == [3, 4]
    assert empty.donors(Few(), 6).tolist() == [3, 4, 5, 6]
