from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans as Theirs

from lloydia import KMeans, MiniBatchKMeans, assign, k_means, kmeans_plusplus
from lloydia.data.sparse import as_csr
from table import blobs

DENSE = np.round(np.maximum(blobs(60, 4, "float64"), 0), 1)
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
KINDS = {"matrix": sp.coo_matrix, "array": sp.coo_array}


def wide(X):
    """The same matrix with 64-bit indices, where its format has any."""
    X = X.copy()
    for name in ("indices", "indptr"):
        if hasattr(X, name):
            setattr(X, name, getattr(X, name).astype(np.int64))
    if hasattr(X, "coords"):
        X.coords = tuple(each.astype(np.int64) for each in X.coords)
    return X


def fitted(X, kind=KMeans):
    model = kind(4, random_state=0).fit(X)
    return model.cluster_centers_.tobytes(), model.labels_.tobytes(), model.inertia_


EXPECTED = {kind: fitted(sp.csr_matrix(DENSE), kind) for kind in (KMeans, MiniBatchKMeans)}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widen", [wide, lambda X: X], ids=["64", "32"])
def test_every_format_and_width_of_indices_gives_the_same_fit(form, kind, widen):
    X = widen(KINDS[kind](DENSE).asformat(form))
    before = {name: getattr(X, name).dtype for name in ("indices", "indptr") if hasattr(X, name)}
    assert fitted(X) == EXPECTED[KMeans]
    assert fitted(X, MiniBatchKMeans) == EXPECTED[MiniBatchKMeans]
    assert {name: getattr(X, name).dtype for name in before} == before


def test_every_entrance_takes_64_bit_indices():
    X, narrow = wide(sp.csr_array(DENSE)), sp.csr_array(DENSE)
    model = KMeans(4, init=X[:4], n_init=1).fit(narrow)
    assert (model.predict(X) == model.labels_).all()
    assert (model.transform(X) == model.transform(narrow)).all()
    assert model.score(X) == model.score(narrow)
    assert assign(X, X[:3])[1] == assign(narrow, DENSE[:3])[1]
    assert k_means(X, 4, random_state=0)[2] == EXPECTED[KMeans][2]
    assert (
        kmeans_plusplus(X, 3, random_state=0)[1] == kmeans_plusplus(narrow, 3, random_state=0)[1]
    ).all()
    batches = [MiniBatchKMeans(4, random_state=0).partial_fit(each) for each in (X, narrow)]
    assert (batches[0].labels_ == batches[1].labels_).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int64", "longdouble", "float32"])
def test_numbers_of_other_types_are_read_as_their_dense_ones(dtype):
    X = DENSE.astype(dtype)
    assert KMeans(4, init="first").fit(wide(sp.csr_array(X))).inertia_ == pytest.approx(
        KMeans(4, init="first").fit(X).inertia_, rel=1e-6
    )


def test_unsorted_and_repeated_entries_are_sorted_and_added_in_a_copy():
    data, columns, starts = [1.0, 2.0, 3.0, 4.0], [2, 0, 0, 1], [0, 3, 4]
    for width in (np.int32, np.int64):
        X = sp.csr_array(
            (np.array(data), np.array(columns, width), np.array(starts, width)), shape=(2, 3)
        )
        for name in ("indices", "indptr"):
            setattr(X, name, getattr(X, name).astype(width))
        found = as_csr(X)
        assert found.toarray().tolist() == [[5.0, 0.0, 1.0], [0.0, 4.0, 0.0]]
        assert found.has_canonical_format
        assert found.indices.dtype == found.indptr.dtype == np.int32
        assert (X.data.tolist(), X.indices.tolist()) == (data, columns)
        assert X.indices.dtype == width


def test_what_32_bits_cannot_count_is_said_in_our_words():
    X = sp.csr_array(([1.0, 2.0, 3.0], ([0, 1, 2], [0, 1, 2**32])), shape=(3, 2**33))
    with pytest.raises(ValueError, match="has 8,589,934,592 columns, and at most 2,147,483,647"):
        KMeans(2).fit(X)
    # Zeros that take no memory: there are more of them than 32 bits count.
    X = sp.csr_array(DENSE)
    X.indptr = np.linspace(0, 2**32, 61).astype(np.int64)
    with pytest.raises(ValueError, match="has 4,294,967,296 stored values"):
        as_csr(X)


BROKEN = {
    "a column outside": ("indices", lambda a: np.where(np.arange(len(a)) == 5, 4, a)),
    "a negative column": ("indices", lambda a: np.where(np.arange(len(a)) == 5, -1, a)),
    "rows backwards": ("indptr", lambda a: np.concatenate([a[:3], a[1:2], a[4:]])),
    "more than there is": ("indptr", lambda a: np.concatenate([a[:-1], a[-1:] + 9])),
    "another beginning": ("indptr", lambda a: np.concatenate([[1], a[1:]])),
    "a row too few": ("indptr", lambda a: a[:-1]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_indices_outside_their_matrix_reach_no_kernel(name):
    attribute, spoil = BROKEN[name]
    X = sp.csr_array(DENSE)
    setattr(X, attribute, spoil(getattr(X, attribute)).astype(np.int32))
    for use in (KMeans(2).fit, KMeans(4, random_state=0).fit(DENSE).predict):
        with pytest.raises(ValueError, match="its indices do not fit its shape"):
            use(X)


def test_nothing_is_refused_in_the_name_of_scikit_learn():
    for X, message in [
        (sp.csr_array(DENSE * 1j), "Complex data not supported: X is sparse and holds complex128"),
        (sp.coo_array(np.ones(5)), r"Expected 2D array, got a sparse array of shape \(5,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            KMeans(2).fit(X)
    X = wide(sp.csr_array(DENSE))
    X.data[3] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        KMeans(2).fit(X)


def test_the_result_is_that_of_scikit_learn():
    X = sp.csr_matrix(DENSE)
    ours, theirs = (kind(4, random_state=0, n_init=1).fit(X) for kind in (KMeans, Theirs))
    assert (ours.labels_ == theirs.labels_).all()
