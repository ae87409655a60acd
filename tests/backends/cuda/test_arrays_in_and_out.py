"""Arrays on a GPU: what may come in, and that results go back to where they came from."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

from lloydia import KMeans, assign, k_means, kmeans_plusplus, metrics
from lloydia.data import device_arrays
from lloydia.data.arrays import on_host

ROWS = np.random.default_rng(0).normal(size=(60, 3)).round(2)
TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Foreign:
    """An array of another library on the GPU, as CuPy's are: it speaks DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    shape = property(lambda self: self.tensor.shape)
    dtype = property(lambda self: np.dtype(str(self.tensor.dtype).removeprefix("torch.")))
    strides = property(lambda self: self.tensor.stride())

    def __getitem__(self, key):
        return Foreign(self.tensor[key])

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __array_namespace__(self):
        return SimpleNamespace(from_dlpack=lambda array: Foreign(torch.from_dlpack(array)))


def oracle(X, **parameters):
    return KMeans(4, random_state=0, device="reference", **parameters).fit(on_host(X))


def same(model, expected):
    assert (on_host(model.labels_) == expected.labels_).all()
    assert on_host(model.cluster_centers_).tobytes() == expected.cluster_centers_.tobytes()
    assert model.inertia_ == expected.inertia_
    assert model.n_iter_ == expected.n_iter_


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_tensors_come_back_as_tensors_where_they_were(dtype, device):
    X = torch.tensor(ROWS, device=device).to(dtype)
    model = KMeans(4, random_state=0).fit(X)
    same(model, oracle(X))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    predicted, distances = model.predict(X), model.transform(X)
    for array, kind in (
        (model.labels_, torch.int32),
        (model.cluster_centers_, wide),
        (predicted, torch.int32),
        (distances, wide),
    ):
        assert isinstance(array, torch.Tensor)
        assert array.device == X.device
        assert array.dtype == kind
    assert (predicted == model.labels_).all()
    assert (distances.argmin(dim=1) == predicted).all()
    assert type(model.inertia_) is type(model.score(X)) is float
    assert model.score(X) == -model.inertia_
    assert model.device_.startswith("cuda:")
    assert model.algorithm_ == "lloyd"
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("algorithm", ["auto", "elkan", "yinyang", "filtering"])
def test_every_algorithm_is_lloyds(algorithm, device):
    X = torch.tensor(ROWS, device=device)
    model = KMeans(4, random_state=0, algorithm=algorithm).fit(X)
    same(model, oracle(X))
    assert model.algorithm_ == "lloyd"


@pytest.mark.parametrize(
    "layout",
    [
        lambda X: X.T.contiguous().T,
        lambda X: torch.repeat_interleave(X, 2, dim=1)[:, ::2],
        lambda X: torch.cat([X, X])[: len(X)],
        lambda X: X.requires_grad_(),
        lambda X: torch.complex(X, -X).conj().imag,
    ],
    ids=["Fortran", "strided", "sliced", "with gradient", "conjugate"],
)
def test_any_tensor_of_the_same_values_gives_the_same_bits(layout, device):
    X = torch.tensor(ROWS, device=device)
    same(KMeans(4, random_state=0).fit(layout(X)), oracle(ROWS))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.bool], ids=str)
def test_integers_become_float64(dtype, device):
    X = torch.tensor(ROWS * 9, device=device).abs().to(dtype)
    model = KMeans(2, random_state=0).fit(X)
    assert model.cluster_centers_.dtype == torch.float64
    assert model.inertia_ == KMeans(2, random_state=0).fit(X.cpu().numpy()).inertia_


def test_another_library_gets_its_own_arrays(device):
    X = Foreign(torch.tensor(ROWS, device=device))
    seen = []

    def init(X, k, random_state):
        seen.append(X)
        return X[:k]

    model = KMeans(4, init=init, n_init=1).fit(X)
    results = [model.labels_, model.cluster_centers_, model.predict(X), model.transform(X)]
    assert all(isinstance(array, Foreign) for array in (*results, *seen))
    assert seen[0].tensor.data_ptr() == X.tensor.data_ptr()
    same_start = KMeans(4, init=ROWS[:4]).fit(ROWS)
    assert (on_host(model.labels_) == same_start.labels_).all()
    assert (on_host(model.cluster_centers_) == same_start.cluster_centers_).all()


def test_a_library_without_dlpack_import_gets_tensors(device):
    X = Foreign(torch.tensor(ROWS, device=device))
    assert isinstance(device_arrays._importer(X)(X.tensor), Foreign)
    assert device_arrays._importer(object())(X.tensor) is X.tensor


def test_strides_below_zero_are_copied_before_torch_sees_them(device):
    copied = torch.zeros(2, 3, device=device)
    X = SimpleNamespace(strides=(-24, 8), copy=lambda: Foreign(copied))
    assert device_arrays.as_tensor(X).data_ptr() == copied.data_ptr()


def test_host_arrays_go_up_and_results_come_down(device):
    for X in (ROWS, ROWS.astype(np.float32), np.asfortranarray(ROWS), ROWS[::-1].T[::2].T):
        model = KMeans(4, random_state=0, device="cuda").fit(X)
        same(model, oracle(X))
        assert isinstance(model.labels_, np.ndarray)
        assert isinstance(model.cluster_centers_, np.ndarray)
        assert isinstance(model.predict(X), np.ndarray)
        assert isinstance(model.transform(X), np.ndarray)


def test_weights_and_starts_may_live_on_either_side(device):
    weights = np.random.default_rng(1).random(60)
    X = torch.tensor(ROWS, device=device)
    expected = KMeans(4, init=ROWS[:4], device="reference").fit(ROWS, sample_weight=weights)
    for w in (weights, torch.tensor(weights, device=device)):
        for init in (ROWS[:4], X[:4], X[:4].requires_grad_(), lambda X, k, random_state: X[:k]):
            same(KMeans(4, init=init, n_init=1).fit(X, sample_weight=w), expected)


def test_one_side_predicts_for_the_other(device):
    X = torch.tensor(ROWS, device=device)
    above, below = KMeans(4, random_state=0).fit(X), KMeans(4, random_state=0).fit(ROWS)
    assert isinstance(above.predict(ROWS), np.ndarray)
    assert (above.predict(ROWS) == below.labels_).all()
    assert isinstance(below.predict(X), torch.Tensor)
    assert (on_host(below.predict(X)) == below.labels_).all()
    assert above.score(ROWS) == below.score(X)
    assert (on_host(below.transform(X)) == above.transform(ROWS)).all()


def test_types_meet_in_float64(device):
    X = torch.tensor(ROWS, device=device)
    model = KMeans(4, random_state=0).fit(X)
    narrow = X.float()
    expected, inertia = assign(on_host(narrow).astype(np.float64), on_host(model.cluster_centers_))
    assert (on_host(model.predict(narrow)) == expected).all()
    assert model.score(narrow) == -inertia


def test_a_pickle_holds_numpy_arrays_and_predicts_anywhere(device):
    X = torch.tensor(ROWS, device=device)
    model = KMeans(4, random_state=0, init=X[:4]).fit(X)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        for array in (other.labels_, other.cluster_centers_, other.init):
            assert isinstance(array, np.ndarray)
        assert (other.predict(ROWS) == on_host(model.labels_)).all()
        assert (other.predict(X) == model.labels_).all()
    assert isinstance(model.labels_, torch.Tensor)
    assert not hasattr(clone(model), "labels_")


def test_data_frames_on_request(device):
    pandas = pytest.importorskip("pandas")
    X = torch.tensor(ROWS, device=device)
    model = KMeans(4, random_state=0).set_output(transform="pandas")
    frame = model.fit_transform(X)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(model.get_feature_names_out())
    assert isinstance(model.set_output(transform="default").transform(X), torch.Tensor)


def test_the_functions_do_likewise(device):
    X = torch.tensor(ROWS, device=device)
    centers, labels, inertia, n_iter = k_means(X, 4, random_state=0, return_n_iter=True)
    expected = k_means(ROWS, 4, random_state=0, return_n_iter=True)
    assert (inertia, n_iter) == expected[2:]
    assert (on_host(centers) == expected[0]).all()
    assert centers.device == labels.device == X.device
    seeds, rows = kmeans_plusplus(X, 4, random_state=0, x_squared_norms=X.square().sum(dim=1))
    assert (seeds == X[rows]).all()
    assert (on_host(rows) == kmeans_plusplus(ROWS, 4, random_state=0)[1]).all()
    for C in (centers, on_host(centers)):
        assigned, cost = assign(X, C)
        assert (assigned == labels).all()
        assert cost == inertia


def test_scores_take_arrays_of_either_side(device):
    X = torch.tensor(ROWS, device=device)
    labels = KMeans(4, random_state=0).fit_predict(X)
    for score in (
        metrics.silhouette_score,
        metrics.calinski_harabasz_score,
        metrics.davies_bouldin_score,
    ):
        expected = score(ROWS, on_host(labels))
        assert score(ROWS, labels) == expected
        for there in (labels, on_host(labels)):
            found = score(X, there)
            assert type(found) is float
            assert found == pytest.approx(expected, rel=1e-12)  # additions in another order
    sample = {"sample_size": 30, "random_state": 0}
    expected = metrics.silhouette_score(ROWS, on_host(labels), **sample)
    assert metrics.silhouette_score(X, labels, **sample) == pytest.approx(expected, rel=1e-12)
    assert isinstance(metrics.silhouette_samples(X, labels), torch.Tensor)


def test_callbacks_see_the_rows_and_centres_as_the_caller_has_them(device):
    pytest.importorskip("sklearn.callback")
    rows = torch.tensor(ROWS, device=device)
    seen = []

    class Watcher:
        def setup(self, estimator, context):
            pass

        teardown = setup

        def on_fit_task_begin(self, estimator, context, *, X):
            seen.append(X)

        def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
            seen.extend([X, fitted_estimator.cluster_centers_])
            assert fitted_estimator.predict(X).device == X.device

    model = KMeans(4, random_state=0).set_callbacks(Watcher()).fit(rows)
    same(model, oracle(ROWS))
    assert len(seen) > 5
    assert all(isinstance(array, torch.Tensor) for array in seen)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[0], "Expected 2D array, got 1D array instead"),
        (lambda X: X[0, 0], "Expected 2D array, got scalar array instead"),
        (lambda X: X[None], "Found array with dim 3"),
        (lambda X: X[:0], r"Found array with 0 sample\(s\)"),
        (lambda X: X[:, :0], r"Found array with 0 feature\(s\)"),
        (lambda X: X + 1j, "Complex data not supported"),
        (lambda X: torch.where(X > 1, torch.nan, X), "Input X contains NaN"),
        (lambda X: torch.where(X > 1, torch.inf, X), "Input X contains infinity"),
        (lambda X: X.to_sparse(), r"X is sparse.*X\.to_dense\(\)"),
        (lambda X: X[:2], "n_samples=2 should be >= n_clusters=4"),
        (lambda X: X * 1e160, "rescale the data"),
    ],
)
def test_bad_rows_get_scikit_learns_errors(spoil, message, device):
    with pytest.raises(ValueError, match=message):
        KMeans(4).fit(spoil(torch.tensor(ROWS, device=device)))


def test_the_number_of_features_must_agree(device):
    model = KMeans(4, random_state=0).fit(torch.tensor(ROWS, device=device))
    message = "X has 2 features, but KMeans is expecting 3 features as input"
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=message):
            method(torch.tensor(ROWS[:, :2], device=device))


@pytest.mark.parametrize("where", ["cpu", "reference"])
def test_rows_on_a_gpu_are_not_moved_silently(where, device):
    with pytest.raises(ValueError, match=rf"device='{where}' does not.*X\.cpu\(\).*X\.get\(\)"):
        KMeans(4, device=where).fit(torch.tensor(ROWS, device=device))


def test_sparse_rows_are_refused():
    with pytest.raises(ValueError, match="device='cuda' takes dense data"):
        KMeans(4, device="cuda").fit(sp.csr_matrix(ROWS))
