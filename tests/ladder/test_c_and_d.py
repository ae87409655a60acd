"""What the experiments C and D are made of: their data, and C's text."""

from importlib.util import find_spec

import numpy as np
import pytest

from lloydia.ladder import named
from lloydia.ladder.experiments.c import RULE
from lloydia.ladder.experiments.d.photographs import colors, photographs, pixels
from lloydia.ladder.experiments.dump import dump
from lloydia.ladder.experiments.uniform import square


def test_points_are_uniform_in_the_unit_square():
    X = square(20_000, on_gpu=False)
    assert X.shape == (20_000, 2)
    assert X.dtype == np.float32
    counts = np.histogram2d(*X.T, bins=10, range=[[0, 1], [0, 1]])[0]
    assert counts.sum() == 20_000
    assert np.abs(counts - 200).max() < 5 * np.sqrt(200)
    np.testing.assert_array_equal(square(50, on_gpu=False), X[:50])


@pytest.mark.skipif(find_spec("numba_cuda") is None, reason="needs numba-cuda")
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # of the simulator
@pytest.mark.filterwarnings("ignore:Grid size")
def test_a_gpu_makes_the_same_points():
    np.testing.assert_array_equal(square(300, on_gpu=True), square(300, on_gpu=False))


@pytest.mark.parametrize("n", [1_000, 700_000])
def test_pixels_are_those_of_the_photographs(n):
    X = pixels(n)
    assert X.shape == (n, 3)
    if n > len(photographs()):
        np.testing.assert_array_equal(X[: len(photographs())], photographs())
    else:  # spread over all of it, which has a sky and a flower
        assert np.abs(X.mean(axis=0) - photographs().mean(axis=0)).max() < 5
    assert len(np.unique(colors(27), axis=0)) == 27


def read(path):
    """Return the centres, labels and points of a text file."""
    blocks = path.read_text().split("# ")[1:]
    centers, rows = (np.loadtxt(block.splitlines()[1:], np.float32, ndmin=2) for block in blocks)
    return centers, rows[:, 0].astype(int), rows[:, 1:]


@pytest.mark.parametrize("every", [False, True])
def test_text_has_all_bits_of_a_run(tmp_path, every):
    X = square(120, on_gpu=False)
    whole = named("r01_lloyd").fit(X, X[:5], rule=RULE, max_iter=100)
    given = {"rung": "r01_lloyd", "rule": RULE, "max_iter": 100}
    paths = list(dump(tmp_path, X, X[:5], **given, every=every))
    assert paths == sorted(tmp_path.iterdir())
    assert len(paths) == (whole.n_iter if every else 1)
    assert paths[-1].name == f"iteration-{whole.n_iter:03}.txt"
    for number, path in enumerate(paths, 1 if every else whole.n_iter):
        some = named("r01_lloyd").fit(X, X[:5], rule=None, max_iter=number)
        for found, wanted in zip(read(path), (some.centers, some.labels, X)):
            np.testing.assert_array_equal(found, wanted)


def test_a_rung_with_bounds_cannot_be_dumped(tmp_path):
    X = square(120, on_gpu=False)
    with pytest.raises(ValueError, match="r02_elkan keeps bounds between iterations"):
        list(dump(tmp_path, X, X[:5], rung="r02_elkan", rule=RULE, max_iter=9, every=False))
