from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from lloydia.plots import BRIGHT, DRAWN, MUTED, clusters, colors, project

RNG = np.random.default_rng(0)


def blobs(n, d, k):
    labels = np.arange(n) % k
    centers = 10 * RNG.normal(size=(k, d))
    return centers[labels] + RNG.normal(size=(n, d)), labels, centers


def dots(ax):
    return np.asarray(ax.collections[0].get_offsets())


def test_two_features_are_drawn_as_they_are(tmp_path):
    X, labels, centers = blobs(90, 2, 3)
    ax = clusters(X, labels, centers, tmp_path / "p.png", title="t", names=("u", "v"))
    assert np.array_equal(dots(ax), X)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title("left")) == ("u", "v", "t")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_more_features_are_projected():
    X, labels, centers = blobs(90, 5, 3)
    ax = clusters(X, labels, centers)
    centred = X - X.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions[:2].T
    assert np.allclose(np.abs(dots(ax)), np.abs(expected))
    assert ax.get_xlabel() == f"component 1 ({sizes[0] ** 2 / (sizes**2).sum():.0%} of variance)"
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2"]


def test_centres_are_projected_with_the_points():
    X, labels, _ = blobs(90, 5, 3)
    means = np.array([X[labels == j].mean(axis=0) for j in range(3)])
    points, at, shares = project(X, means)
    assert np.allclose(at, [points[labels == j].mean(axis=0) for j in range(3)])
    assert 0 < shares[1] <= shares[0] < 1


def test_large_data_are_thinned_and_the_picture_says_so():
    X, labels, centers = blobs(DRAWN + 5, 2, 3)
    ax = clusters(X, labels, centers)
    assert len(dots(ax)) == DRAWN
    assert ax.get_title("right") == "20,000 of 20,005 points drawn"


def test_one_feature_is_a_stacked_histogram():
    X, labels, centers = blobs(500, 1, 3)
    ax = clusters(X, labels, centers, names=["width"])
    assert sum(bar.get_height() for bar in ax.patches) == 500
    assert ax.get_xlabel() == "width"


@pytest.mark.parametrize("X", [np.ones((1, 3)), np.ones((5, 3)), np.ones((5, 1)), np.ones((1, 2))])
@pytest.mark.filterwarnings("error")
def test_data_without_variance(X, tmp_path):
    clusters(X, np.zeros(len(X), int), X[:1], tmp_path / "p.png")


def test_given_axes_are_used():
    ax = Figure().add_subplot()
    assert clusters(*blobs(30, 2, 3), ax=ax) is ax


def test_shapes_must_fit():
    X, labels, centers = blobs(30, 2, 3)
    with pytest.raises(ValueError, match=r"centers \(3, 1\) do not fit"):
        clusters(X, labels, centers[:, :1])


def test_colours_are_distinct_up_to_ten():
    assert len(set(BRIGHT)) == 7
    assert len(set(MUTED)) == 10
    for k in range(1, 11):
        assert len(set(colors(k))) == k
    assert len(colors(30)) == 30


def test_pyplot_stays_out():
    code = "import sys, lloydia.plots; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
