from __future__ import annotations

import gc

import numpy as np
import pytest
import scipy.sparse as sp

from lloydia import KMeans
from lloydia.backends.cpu.rows.read_only import as_writable
from lloydia.cli.compilation.kernels import compiled_for_cpu


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_the_memory_is_the_same_and_stays(order, step):
    rows = np.array(np.arange(24.0).reshape(8, 3), order=order)[::step]
    assert as_writable(rows) is rows
    before = rows.copy()
    rows.flags.writeable = False
    found = as_writable(rows)
    assert found.flags.writeable
    assert not rows.flags.writeable
    assert found.strides == rows.strides
    assert found.dtype == rows.dtype
    assert np.shares_memory(found, rows)
    del rows
    gc.collect()
    assert (found == before).all()


def test_no_rows():
    rows = np.empty((0, 3), dtype=np.float32)
    rows.flags.writeable = False
    assert as_writable(rows).shape == (0, 3)


@pytest.mark.parametrize("algorithm", ["auto", "elkan"])
def test_read_only_rows_need_no_kernels_of_their_own(algorithm, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = KMeans(4, algorithm=algorithm, random_state=0).fit(X)
    np.save(tmp_path / "rows.npy", X)
    mapped, locked = np.load(tmp_path / "rows.npy", mmap_mode="r"), X.copy()
    locked.flags.writeable = False
    with compiled_for_cpu() as taken:
        for rows in (mapped, locked):
            other = KMeans(4, algorithm=algorithm, random_state=0).fit(rows)
            assert (other.labels_ == model.labels_).all()
            assert other.inertia_ == model.inertia_
            assert (model.predict(rows) == model.labels_).all()
        assert taken() == []
    assert (locked == X).all()


def test_read_only_sparse_rows_need_no_kernels_of_their_own():
    X = sp.random_array((300, 12), density=0.3, format="csr", rng=np.random.default_rng(0))
    model = KMeans(4, random_state=0).fit(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    with compiled_for_cpu() as taken:
        assert (KMeans(4, random_state=0).fit(X).labels_ == model.labels_).all()
        assert taken() == []
