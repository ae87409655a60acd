"""Blocks that do not stay in memory are decoded once where they may be written to a disk."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import lloydia
from lloydia import KMeans
from lloydia.data.chunks.reader import Reader
from lloydia.data.chunks.spill import Spill
from lloydia.data.columns import DataError
from table import answer, blobs, weights_of
from tight import for_fit, tight

pytestmark = pytest.mark.thread_unsafe(reason="a fixture counts the reads of one thread")
X = blobs(1000, 3, "float32")


@pytest.fixture
def reads():
    """A source that notes which rows were asked of it: blocks of 100, beginning with each piece."""
    asked = []

    def given():
        asked.append(0)
        for first in range(0, 1000, 100):
            asked[-1] = first + 100
            yield X[first : first + 100]

    return given, asked


@pytest.mark.parametrize("kept", [0, 4])
@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
def test_a_fit_reads_its_source_once(kept, init, reads, tmp_path):
    given, asked = reads
    wide = weights_of("wide", 1000)
    for weights, reads_of_all in ((np.maximum(wide, 1e-8), 1), (wide, 2)):
        model = KMeans(5, init=init, n_init=1, random_state=0, max_iter=7)
        expected = answer(model.fit(X, sample_weight=weights))
        meant = for_fit(model, weights)
        source = tight(given, meant, kept, weighted=True, block=100, spill=tmp_path)
        asked.clear()
        assert answer(model.fit(source, sample_weight=weights)) == expected
        # Once more for the labels of rows of weight 0, if there are any.
        assert asked == [1000] * reads_of_all
    # The file has no name.
    assert os.listdir(tmp_path) == []


def test_nothing_is_written_where_all_blocks_stay(reads, tmp_path):
    given, _ = reads
    model = KMeans(5, random_state=0, max_iter=7)
    source = tight(given, for_fit(model), 10, block=100, spill=tmp_path)
    plan = source.meant_for(model, reset=True).plan(False, None)
    assert (plan.n_kept, plan.n_blocks, plan.whole, plan.spill) == (10, 10, False, None)
    (tmp_path / "more").mkdir()
    source.spill = tmp_path / "gone"
    assert answer(model.fit(source)) == answer(KMeans(5, random_state=0, max_iter=7).fit(X))


def test_blocks_in_any_order(reads, tmp_path):
    given, asked = reads
    source = lloydia.chunks(given, memory="1TB", block=130)
    reader = Reader(source, 130, 2, tmp_path)
    asked.clear()
    for wanted in ([3, 5], [1, 3, 7], range(8), range(8), [6]):
        for i, block in reader.blocks(wanted):
            np.testing.assert_array_equal(block, X[130 * i : 130 * (i + 1)])
    # Of three times the last one began before the end, and none began again.
    assert len(asked) == 3
    assert sorted(reader.spill.places) == [2, 3, 4, 5, 6, 7]
    assert sorted(reader.cache) == [0, 1]


def test_values_that_are_not_finite_are_named(tmp_path):
    rows = X.copy()
    rows[777, 1] = np.nan
    model = KMeans(4, random_state=0)
    source = tight(lambda: iter([rows[:300], rows[300:]]), for_fit(model), block=97, spill=tmp_path)
    with pytest.raises(DataError, match=r"row 478 \(row 778 of all\), column 2 is NaN"):
        model.fit(source)


def test_folders_that_do_not_take_them(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"spill='.*none' is not a folder: make it"):
        lloydia.chunks(lambda: iter([X]), spill=tmp_path / "none")
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patched:
        patched.setattr("shutil.disk_usage", lambda folder: usage(10**9, 10**9 - 5000, 5000))
        Spill(tmp_path, 5000)
        with pytest.raises(OSError, match=r"has 5 kB free, and the rows .* take 12 kB"):
            Spill(tmp_path, 12_000)
        patched.setattr("tempfile.TemporaryFile", refuse)
        with pytest.raises(OSError, match=r"cannot write rows into .*: permission denied\."):
            Spill(tmp_path, 10)


def refuse(**options):
    raise PermissionError(13, "Permission denied")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is full")
@pytest.mark.parametrize("n", [3, 1000])
def test_a_full_disk(n, tmp_path):
    spill = Spill(tmp_path, 10)
    match = r"cannot write rows into .*: no space left on device\."
    with open("/dev/full", "r+b", buffering=0) as spill.file, pytest.raises(OSError, match=match):
        spill.write(3, X[:n])
    assert 3 not in spill


def test_a_file_that_was_cut(tmp_path):
    spill = Spill(tmp_path, X.nbytes)
    spill.write(0, X)
    np.testing.assert_array_equal(spill.read(0, X.shape, X.dtype), X)
    spill.file.truncate(X.nbytes - 1)
    with pytest.raises(OSError, match=r"rows that were written into .* cannot be read again\."):
        spill.read(0, X.shape, X.dtype)


@pytest.mark.filterwarnings(
    "error::pytest.PytestUnraisableExceptionWarning", "error::ResourceWarning"
)
def test_its_file_is_closed_when_it_is_let_go(tmp_path):
    spill = Spill(tmp_path, 10)
    file = spill.file
    del spill
    assert file.closed
