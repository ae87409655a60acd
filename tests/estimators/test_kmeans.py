"""The estimator as its users meet it."""

from __future__ import annotations

import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.cluster
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lloydia
from lloydia import KMeans, MiniBatchKMeans, stopping
from lloydia.parameters import InvalidParameterError

X = load_iris().data


def test_the_signature_is_scikit_learns_and_four_more():
    ours = KMeans().get_params()
    theirs = sklearn.cluster.KMeans().get_params()
    assert set(ours) - set(theirs) == {"device", "n_threads", "stop", "empty"}
    for name in set(theirs) - {"algorithm"}:
        assert ours[name] == theirs[name]
    assert ours["algorithm"] == "auto"


def test_fitted_attributes():
    model = KMeans(3, random_state=0).fit(X)
    assert model.cluster_centers_.shape == (3, 4)
    assert model.labels_.dtype == np.int32
    assert isinstance(model.inertia_, float)
    assert isinstance(model.n_iter_, int)
    assert model.converged_
    assert model.algorithm_ == "lloyd"
    assert model.device_ == "cpu"
    assert model.n_features_in_ == 4
    assert model.seconds_seeding_ > 0
    assert model.n_distances_ >= 150 * 3 * model.n_iter_
    assert 0 <= model.n_rechecked_ < 15
    assert not hasattr(model, "inertia_history_")
    assert model.score(X) == -model.inertia_
    assert (model.fit_predict(X) == model.predict(X)).all()
    assert (model.fit_transform(X) == model.transform(X)).all()


def halves(X, n_clusters, random_state):
    return X[:n_clusters]


@pytest.mark.parametrize(
    ("init", "start"),
    [("k-means++", "by k-means++"), (halves, "by halves"), (X[:3], "")],
    ids=["name", "function", "array"],
)
def test_what_is_printed(init, start, capsys):
    KMeans(3, init=init, n_init=1, max_iter=1, random_state=0).fit(X)
    assert capsys.readouterr() == ("", "")
    KMeans(3, init=init, n_init=1, max_iter=1, random_state=0, verbose=1).fit(X)
    printed = capsys.readouterr().out.splitlines()
    if start:
        assert printed.pop(0) == f"Initialization {start}..."
        assert re.fullmatch(r"Initialization complete in [0-9.e-]+ s", printed.pop(0))
    else:
        assert printed.pop(0) == "Initialization complete"
    assert re.fullmatch(r"Iteration 0, inertia [0-9.]+\.", printed.pop(0))
    assert printed == ["Ended at iteration 0: max_iter reached."]


def test_runs_are_counted_where_there_are_several(capsys):
    KMeans(3, n_init=2, max_iter=1, random_state=0, verbose=1).fit(X)
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith("Run")] == ["Run 1 of 2", "Run 2 of 2"]


def test_the_history_is_kept_only_where_it_was_asked_for(capsys):
    verbose = KMeans(3, random_state=0, verbose=1).fit(X)
    assert len(verbose.inertia_history_) == verbose.n_iter_
    printed = capsys.readouterr().out
    assert f"Iteration 0, inertia {verbose.inertia_history_[0]}." in printed
    verbose.set_params(verbose=0).fit(X)
    assert not hasattr(verbose, "inertia_history_")
    assert hasattr(KMeans(3, stop=stopping.Inertia(1.0)).fit(X), "inertia_history_")


def test_types_in_and_out():
    for given, kept in (("float16", "float32"), ("float32", "float32"), ("float64", "float64")):
        model = KMeans(3, random_state=0).fit(X.astype(given))
        assert model.cluster_centers_.dtype == kept
        assert model.transform(X.astype(given)).dtype == kept
    integers = KMeans(3, random_state=0).fit((X * 10).astype(np.int32))
    assert integers.cluster_centers_.dtype == np.float64
    assert KMeans(2, random_state=0).fit([[1, 2], [3, 4], [9, 9]]).labels_.shape == (3,)


def test_half_precision_is_read_exactly():
    half = X.astype(np.float16)
    a, b = (KMeans(3, random_state=0).fit(A) for A in (half, half.astype(np.float32)))
    assert a.inertia_ == b.inertia_
    assert (a.cluster_centers_ == b.cluster_centers_).all()


def test_other_types_at_predict_compare_exact_values():
    model = KMeans(3, random_state=0).fit(X)
    single = X.astype(np.float32)
    assert (model.predict(single) == model.predict(single.astype(np.float64))).all()
    narrow = KMeans(3, random_state=0).fit(single)
    assert (narrow.predict(single.astype(np.float64)) == narrow.labels_).all()


@pytest.mark.slow
def test_X_is_never_changed_and_may_be_read_only_or_strided():
    expected = KMeans(3, random_state=0).fit(X)
    frozen = X.copy()
    frozen.setflags(write=False)
    wide = np.zeros((150, 8))
    wide[:, ::2] = X
    for given in (frozen, np.asfortranarray(X), wide[:, ::2]):
        before = given.copy()
        model = KMeans(3, random_state=0, copy_x=False).fit(given)
        assert model.inertia_ == expected.inertia_
        assert (given == before).all()


def test_masked_values_are_refused_and_a_mask_of_none_is_no_matter():
    whole = np.ma.MaskedArray(X, mask=np.zeros(X.shape, bool))
    fits = [KMeans(3, random_state=0).fit(rows) for rows in (X, whole)]
    assert fits[0].inertia_ == fits[1].inertia_
    some = whole.copy()
    some[[3, 7], 1] = np.ma.masked
    model = KMeans(3).fit(X)
    calls = (
        KMeans(3).fit,
        model.predict,
        lambda rows: KMeans(3).fit(lloydia.chunks(rows)),
        lambda rows: KMeans(3).fit(lloydia.chunks(lambda: iter([X, rows]))),
        lambda rows: KMeans(3).fit(lloydia.chunks(rows, columns="2-3")),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"2 values are masked.*numpy.ma.filled"):
            call(some)
    KMeans(3).fit(lloydia.chunks(some, columns="1,3-4"))
    with pytest.raises(ValueError, match="1 value is masked"):
        KMeans(3).fit(X, sample_weight=np.ma.masked_equal(np.arange(len(X)), 5))


@pytest.mark.parametrize("d", [257, 1000])
def test_filtering_is_for_few_features(d):
    rows = np.random.default_rng(0).normal(size=(40, d))
    with pytest.raises(ValueError, match=f"at most 256 features and X has {d}"):
        KMeans(3, algorithm="filtering", init="first", n_init=1).fit(rows)


def test_sparse_input_in_any_format_and_with_duplicates():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((200, 300)) < 0.05, rng.normal(size=(200, 300)), 0.0)
    expected = KMeans(5, random_state=0).fit(dense)
    doubled = sp.coo_matrix(dense / 2)
    rows, cols = np.tile(doubled.row, 2), np.tile(doubled.col, 2)
    duplicated = sp.csr_matrix((200, 300))
    order = np.argsort(rows, kind="stable")
    duplicated = sp.csr_matrix(
        (np.tile(doubled.data, 2)[order], cols[order], np.searchsorted(rows[order], range(201))),
        shape=(200, 300),
    )
    assert not duplicated.has_canonical_format
    for given in (sp.csr_matrix(dense), sp.csc_matrix(dense), sp.coo_array(dense), duplicated):
        model = KMeans(5, random_state=0).fit(given)
        assert model.inertia_ == expected.inertia_
        assert (model.cluster_centers_ == expected.cluster_centers_).all()
        assert (model.predict(given) == expected.labels_).all()
        assert (model.transform(given) == expected.transform(dense)).all()
    assert not duplicated.has_canonical_format


@pytest.mark.slow
def test_sparse_rows_are_not_made_dense():
    """A dense copy of this matrix would take 80 GB."""
    rng = np.random.default_rng(0)
    wide = sp.random(20_000, 500_000, density=2e-5, format="csr", random_state=rng)
    model = KMeans(3, init="random", n_init=1, random_state=0, max_iter=2).fit(wide)
    assert model.cluster_centers_.shape == (3, 500_000)


def test_weights_count_like_repeated_rows():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=150)
    repeated = KMeans(3, init=X[:3]).fit(np.repeat(X, counts, axis=0))
    weighted = KMeans(3, init=X[:3], tol=0).fit(X, sample_weight=counts)
    assert np.allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-3)
    assert (KMeans(3, random_state=0).fit(X, sample_weight=2.0).labels_ == KMeans(
        3, random_state=0).fit(X).labels_).all()  # fmt: skip


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 149, "sample_weight.shape"),
        ([-1.0] + [1.0] * 149, r"sample_weight\[0\] is -1.0"),
        ([1.0] * 149 + [np.nan], r"sample_weight\[149\] is nan"),
        ([0.0] * 150, "All sample weights are zero"),
        ([1e-200] + [1.0] * 149, "too far apart"),
        (np.ones((150, 2)), "1D array"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        KMeans(3).fit(X, sample_weight=weights)


def test_weights_that_overflow_are_refused_for_float32_too():
    rows = (np.random.default_rng(0).normal(size=(300, 12)) * 1e30).astype(np.float32)
    for init in (rows[:4] * np.float32(1e-25), "k-means++", "random"):
        with pytest.raises(ValueError, match="rescale the data"):
            KMeans(4, init=init, n_init=1).fit(rows, sample_weight=np.full(300, 1e255))
    with pytest.raises(ValueError, match="add up to infinity"):
        KMeans(4).fit(rows, sample_weight=np.full(300, 1e308))


def test_duplicates_in_a_sparse_matrix_that_add_up_to_infinity_are_refused():
    data = np.array([3e38, 3e38, 1.0], dtype=np.float32)
    rows = sp.csr_matrix((data, [0, 0, 1], [0, 2, 3]), shape=(2, 12))
    with pytest.raises(ValueError, match="infinity"):
        KMeans(1).fit(rows)


def test_bad_thread_counts_are_refused_everywhere():
    model = KMeans(3, random_state=0).fit(X).set_params(n_threads=-3)
    for call in (
        lambda: model.predict(X),
        lambda: lloydia.assign(X, X[:2], n_threads=0),
        lambda: lloydia.kmeans_plusplus(X, 2, n_threads=-1),
    ):
        with pytest.raises(ValueError, match=r"n_threads=.* must be None or an integer >= 1"):
            call()


def test_the_random_stream_is_scikit_learns_with_few_distinct_rows():
    rows = np.repeat(np.arange(3.0)[:, None], 5, axis=0)
    ours, theirs = np.random.RandomState(0), np.random.RandomState(0)
    lloydia.kmeans_plusplus(rows, 6, random_state=ours)
    sklearn.cluster.kmeans_plusplus(rows, 6, random_state=theirs)
    assert ours.random_sample() == theirs.random_sample()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 0}, "n_clusters=0 must be an integer >= 1"),
        ({"n_clusters": 2.5}, "n_clusters=2.5"),
        ({"n_clusters": True}, "n_clusters=True"),
        ({"n_clusters": 151}, "n_samples=150 should be >= n_clusters=151"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_init": "many"}, "n_init='many' must be 'auto' or an integer >= 1"),
        ({"n_threads": 0}, "n_threads=0"),
        ({"verbose": -1}, "verbose=-1"),
        ({"copy_x": 3}, "copy_x=3"),
        ({"tol": -1}, "tol=-1"),
        ({"tol": "small"}, "tol='small'"),
        ({"algorithm": "full"}, "algorithm='full' must be one of 'auto', 'lloyd'"),
        ({"init": "kmeans"}, "init='kmeans' must be one of 'k-means\\+\\+'"),
        ({"init": None}, "init=None must be one of 'k-means.*, an array or a callable"),
        ({"init": 3}, "init=3 must be one of"),
        ({"init": b"random"}, "init=b'random' must be one of"),
        ({"init": [[1, 2, 3, 4], [5]]}, "init holds 2 rows of different lengths"),
        ({"init": X[0]}, r"init gives an array of shape \(4,\) and must give .* \(3, 4\)"),
        ({"init": X[None, :3]}, r"init gives an array of shape \(1, 3, 4\) and must give"),
        pytest.param(
            {"init": lambda X, k, random_state: X[0]},
            r"init gives an array of shape \(4,\)",
            id="init returns a row",
        ),
        ({"empty": "ignore"}, "empty='ignore'"),
        ({"stop": 1e-4}, "stop=0.0001 must be None or a rule"),
        ({"device": "tpu"}, "Unknown device 'tpu': use 'auto', 'cpu'"),
        ({"init": X[:0]}, r"shape of the initial centers \(0, 4\) does not match"),
        ({"init": [[], [], []]}, r"shape of the initial centers \(3, 0\) does not match"),
        ({"init": X[:4]}, r"shape of the initial centers \(4, 4\) does not match"),
        ({"init": X[:3, :2]}, r"\(3, 2\) does not match .* 4: give centres of shape \(3, 4\)\.$"),
        ({"init": X[:3] * 1e160}, "rescale the data"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_parameters_get_one_sentence(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        KMeans(**{"n_clusters": 3, **changes}).fit(X)
    assert "\n" not in str(error.value)


def test_a_bad_parameter_is_a_type_error_too_as_in_scikit_learn():
    with pytest.raises(TypeError, match="n_clusters='3'"):
        KMeans("3").fit(X)


@pytest.mark.parametrize(
    "fit",
    [
        lambda: KMeans(3, init=None).fit(X),
        lambda: MiniBatchKMeans(3, init=None).fit(X),
        lambda: MiniBatchKMeans(3, init=None).partial_fit(X),
        lambda: lloydia.k_means(X, 3, init=None),
        lambda: lloydia.k_means_batched(X[None], 3, init=None),
    ],
)
def test_a_start_has_to_be_given(fit):
    with pytest.raises(InvalidParameterError, match="init=None must be one of 'k-means"):
        fit()


@pytest.mark.parametrize("rows", ["rows.csv", Path("rows.csv")])
def test_the_name_of_a_file_is_no_rows(rows):
    model = KMeans(3).fit(X)
    functions = (
        lambda X: lloydia.assign(X, model.cluster_centers_),
        lambda X: lloydia.kmeans_plusplus(X, 3),
    )
    for use in (model.fit, model.predict, MiniBatchKMeans(3).fit, *functions):
        with pytest.raises(ValueError, match=r"^X='rows.csv' is a text, .* lloydia.chunks.path"):
            use(rows)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(len(X), 1 + 1j), "sample_weight holds complex128, and weights must be real"),
        ([[1.0], [2.0, 3.0]], "sample_weight holds 2 rows of different lengths"),
    ],
    ids=["complex", "ragged"],
)
def test_weights_that_are_no_numbers(weights, message):
    with pytest.raises(ValueError, match=message):
        KMeans(3).fit(X, sample_weight=weights)


def test_centers_may_be_of_other_kinds():
    centers = X[:3].round()
    expected, _ = lloydia.assign(X, centers)
    for given in (sp.csr_matrix(centers), np.asmatrix(centers), centers.tolist()):
        assert (lloydia.assign(X, given)[0] == expected).all()


@pytest.mark.parametrize("centers", [3, None, X[0], [[[1.0]]]], ids=["3", "None", "a row", "3-D"])
def test_centers_that_are_no_table_are_refused_by_name(centers):
    with pytest.raises(ValueError, match=r"^centers has shape .* and must be \(n_clusters, n_feat"):
        lloydia.assign(X, centers)


def test_a_failed_fit_leaves_the_old_one():
    model = KMeans(3, random_state=0).fit(X)
    inertia = model.inertia_
    with pytest.raises(ValueError, match="rescale"):
        model.fit(X * 1e160)
    assert model.inertia_ == inertia
    assert (model.labels_ == model.predict(X)).all()


@pytest.mark.thread_unsafe(reason="signals go to the main thread")
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads")
def test_ctrl_c_leaves_nothing_broken(request):
    model = KMeans(3, random_state=0).fit(X)
    inertia = model.inertia_
    many = np.random.default_rng(0).normal(size=(200_000, 16))
    # A process started in the background ignores Ctrl-C until it says otherwise.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    main = threading.main_thread().ident
    threading.Thread(
        target=lambda: (time.sleep(0.5), signal.pthread_kill(main, signal.SIGINT)), daemon=True
    ).start()
    slow = clone(model).set_params(n_clusters=200, tol=0, max_iter=10**6, n_threads=2)
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        slow.fit(many)
    assert time.perf_counter() - began < 20
    assert not hasattr(slow, "cluster_centers_")
    assert KMeans(3, random_state=0, n_threads=2).fit(X).inertia_ == inertia


def test_clone_pickle_and_parameters():
    rule = stopping.Labels(0.01) | stopping.Inertia(1e-3)
    model = KMeans(4, stop=rule, empty="keep", n_threads=2, random_state=1).fit(X)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X) == model.labels_).all()
    assert again.stop == rule


def test_in_a_pipeline_a_grid_and_with_pandas_output():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    steps = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).set_output(
        transform="pandas"
    )
    out = steps.fit_transform(frame)
    assert list(out.columns) == ["kmeans0", "kmeans1", "kmeans2"]
    search = GridSearchCV(KMeans(random_state=0), {"n_clusters": [2, 3]}, n_jobs=2, cv=3).fit(frame)
    assert search.best_params_ == {"n_clusters": 3}
    model = KMeans(3, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_sample_weight_is_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        model = KMeans(3, random_state=0).set_fit_request(sample_weight=True)
        weights = np.linspace(0.1, 5, 150)
        steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model).fit(
            X, sample_weight=weights
        )
        scaled = StandardScaler().fit_transform(X)
        expected = KMeans(3, random_state=0).fit(scaled, sample_weight=weights)
        assert steps[-1].inertia_ == expected.inertia_


def test_n_init_keeps_the_best_and_consumes_one_stream():
    blobs, _ = make_blobs(500, 2, centers=8, random_state=0)
    model = KMeans(8, init="random", n_init=5, random_state=3).fit(blobs)
    stream = np.random.RandomState(3)
    runs = [KMeans(8, init="random", n_init=1, random_state=stream).fit(blobs) for _ in range(5)]
    best = min(runs, key=lambda run: run.inertia_)
    assert model.inertia_ == best.inertia_
    assert (model.labels_ == best.labels_).all()


def test_torch_tensors_on_the_host_are_arrays():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(X)
    for kind, kept in (
        (torch.float64, np.float64),
        (torch.float32, np.float32),
        (torch.float16, np.float32),
        (torch.bfloat16, np.float32),
    ):
        given = tensor.to(kind).requires_grad_()
        model = KMeans(3, random_state=0).fit(given)
        assert model.cluster_centers_.dtype == kept
        exact = given.detach().to(torch.float64).numpy().astype(kept)
        assert model.inertia_ == KMeans(3, random_state=0).fit(exact).inertia_
        assert (model.predict(given) == model.labels_).all()


@pytest.mark.thread_unsafe(reason="the switch of the collector is the process's")
def test_imports_leave_the_garbage_collector_as_it_was():
    import gc

    from lloydia.imports import load

    try:
        for switch in (gc.disable, gc.enable):
            switch()
            before = gc.isenabled()
            assert load("lloydia.estimators.kmeans").KMeans is KMeans
            with pytest.raises(ImportError):
                load("lloydia.nothing")
            assert gc.isenabled() is before
    finally:
        gc.enable()


def test_the_package_itself_imports_nothing_heavy():
    code = (
        "import sys, lloydia; heavy = {'numpy', 'sklearn', 'numba'} & set(sys.modules); "
        "assert not heavy, heavy; assert 'KMeans' in dir(lloydia); lloydia.KMeans; "
        "assert 'numba' not in sys.modules; lloydia.metrics.silhouette_score; "
        "lloydia.images.color.space; lloydia.stopping.Labels; lloydia.callbacks.Checkpoint"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'Kmeans'"):
        lloydia.Kmeans  # noqa: B018


def test_the_functions():
    model = KMeans(3, random_state=0).fit(X)
    centers, labels, inertia, n_iter = lloydia.k_means(X, 3, random_state=0, return_n_iter=True)
    assert inertia == model.inertia_
    assert n_iter == model.n_iter_
    assert len(lloydia.k_means(X, 3, random_state=0)) == 3
    found, cost = lloydia.assign(X, centers)
    assert (found == labels).all()
    assert cost == inertia
    with pytest.raises(ValueError, match="features"):
        lloydia.assign(X, centers[:, :2])
    picked, rows = lloydia.kmeans_plusplus(X, 4, random_state=0)
    assert (picked == X[rows]).all()
    with pytest.raises(ValueError, match="n_samples=150 should be"):
        lloydia.kmeans_plusplus(X, 151)


@pytest.mark.parametrize("name", ["init", "centers", "X"])
def test_what_is_not_finite_is_named(name):
    bad = X[:4].copy()
    bad[1, 2] = np.nan
    calls = {
        "init": lambda: KMeans(4, init=bad).fit(X),
        "centers": lambda: lloydia.assign(X, bad),
        "X": lambda: lloydia.assign(bad, X[:2]),
    }
    with pytest.raises(ValueError, match=f"Input {name} contains NaN"):
        calls[name]()


def test_centres_that_were_set_by_hand_are_enough_to_predict():
    model = KMeans(2)
    model.cluster_centers_ = np.array([[0.0, 0.0], [4.0, 4.0]])
    assert model.predict(np.array([[1.0, 1.0], [3.0, 3.0]])).tolist() == [0, 1]


@pytest.mark.parametrize("seed", [-1, 2**32, "a", 1.5])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("Model", [KMeans, MiniBatchKMeans])
def test_what_is_no_seed_is_named(Model, seed, given):
    X = np.arange(12.0).reshape(6, 2)
    model = Model(2, init=X[:2] if given else "random", n_init=1, random_state=seed)
    with pytest.raises(InvalidParameterError, match=rf"^random_state={seed!r} must be None, an "):
        model.fit(X)


@pytest.mark.parametrize("seed", [0, np.int64(7), 2**32 - 1, None, np.random, True])
def test_seeds_are_scikit_learns(seed):
    X = np.arange(12.0).reshape(6, 2)
    assert KMeans(2, random_state=seed).fit(X).n_iter_ >= 1
