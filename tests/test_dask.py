"""A real cluster of two processes: any partitions, deaths, frames, and what is refused."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import lloydia
import lloydia.backends.cluster
import lloydia.dask
from lloydia import KMeans, stopping
from lloydia.backends.cluster import workers
from lloydia.progress.iterations import watch
from table import answer, blobs, weights_of

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            memory_limit=0, silence_logs=50,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture
def current(client):
    with client.as_current():
        yield client


def cut(X, *lengths):
    """Return a Dask array in blocks of these lengths, which workers make."""
    rest = len(X) - sum(lengths)
    chunks = (*lengths, rest)
    return da.from_array(X, chunks=(chunks, *((n,) for n in X.shape[1:]))).map_blocks(np.array)


def everything(model):
    """Return what :func:`answer` does, of distributed labels."""
    return (
        model.labels_.compute().tobytes(), model.cluster_centers_.tobytes(), model.inertia_,
        model.n_iter_,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("init", "dtype", "weighting", "lengths"),
    [
        ("k-means||", "float32", "none", (300, 0, 450, 1)),
        ("k-means++", "float64", "wide", (0, 20, 900)),
        ("random", "float32", "wide", (1200,)),
    ],
)
def test_a_fit_has_the_bits_of_one_machine(current, init, dtype, weighting, lengths):
    X, weights = blobs(1500, 3, dtype), weights_of(weighting, 1500)
    options = {"init": init, "n_init": 2, "random_state": 4, "max_iter": 6}
    expected = KMeans(7, **options).fit(X, sample_weight=weights)
    rows = cut(X, *lengths)
    given = None if weights is None else da.from_array(weights, chunks=211)
    model = KMeans(7, **options).fit(rows, sample_weight=given)
    assert everything(model) == answer(expected)
    assert model.labels_.chunks == rows.chunks[:1]
    assert model.algorithm_ == "lloyd"
    assert model.score(rows, sample_weight=weights) == expected.score(X, sample_weight=weights)


def test_centres_that_are_large(current):
    # 160 kB of them: more than goes out with a task.
    X = blobs(700, 400, "float32")
    starts = X[:100], X[100:200]
    options = {"max_iter": 4, "stop": stopping.Labels()}
    expected = [KMeans(100, init=start, **options).fit(X) for start in starts]
    models = [KMeans(100, init=start, **options).fit(cut(X, 100, 300)) for start in starts]
    # What is lazy is asked of both before either is computed.
    distances = [model.transform(cut(X, 50)) for model in models]
    for model, other, found in zip(models, expected, distances, strict=True):
        assert everything(model) == answer(other)
        assert np.array_equal(found.compute(), other.transform(X))


@pytest.mark.kill
@pytest.mark.parametrize(
    ("moment", "d"), [("seeding", 12), ("run", 12), pytest.param("run", 4000, id="large")]
)
def test_a_killed_worker_costs_no_bit(current, moment, d, monkeypatch):
    X, weights = blobs(1500, d, "float32"), weights_of("wide", 1500)
    # Two clusters begin empty.
    start = np.vstack([X[:5], np.full((2, d), 1e3, dtype=X.dtype)])
    options = {"random_state": 0, "stop": stopping.Labels(), "max_iter": 12}
    options["init"] = start if moment == "run" else "farthest"
    expected = KMeans(7, **options).fit(X, sample_weight=weights)
    assert expected.n_iter_ > (2 if d > 12 else 4)
    killed = []

    def kill(now):
        if now and not killed:
            killed.extend(current.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    ask = lloydia.backends.cluster.Cluster._query

    def asking(self, method, *rest, **options):
        kill(moment == "seeding" and len(self.history.calls) == 7)
        return ask(self, method, *rest, **options)

    monkeypatch.setattr(lloydia.backends.cluster.Cluster, "_query", asking)
    model = KMeans(7, **options)
    early = min(3, expected.n_iter_ - 1)
    with watch(lambda report: kill(moment == "run" and report.iteration == early)):
        model.fit(cut(X, 200, 300, 400), sample_weight=weights)
    assert killed
    assert everything(model) == answer(expected)


def test_parts_stay_where_they_are(current, monkeypatch):
    histories, bound = [], []
    mapped = workers.mapped

    def mapping(client, places, task, *lists, **common):
        histories.append(common.get("history"))
        found = mapped(client, places, task, *lists, **common)
        distributed.wait(found)
        keys = [future.key for future in found]
        bound.extend(
            current.run_on_scheduler(
                lambda dask_scheduler: [dask_scheduler.tasks[k].worker_restrictions for k in keys]
            )
        )
        return found

    monkeypatch.setattr(lloydia.backends.cluster, "mapped", mapping)
    X = blobs(1500, 3, "float32")
    KMeans(9, init="first", max_iter=6, tol=0).fit(cut(X, 300, 300, 300))
    assert len(histories) > 8
    assert not any(histories)
    assert all(len(addresses) == 1 for addresses in bound)
    assert set.union(*bound) <= set(current.nthreads())


def test_a_lost_client_goes_on_from_a_checkpoint(current, tmp_path):
    pytest.importorskip("sklearn.callback")
    from lloydia.callbacks import Checkpoint

    X, path = blobs(900, 3, "float32"), tmp_path / "fit.npz"
    options = {"init": X[:8], "max_iter": 9, "stop": stopping.Labels()}
    expected = KMeans(8, **options).fit(X)

    def leave(report):
        if report.iteration == 5:
            raise KeyboardInterrupt

    begun = lloydia.dask.KMeans(8, client=current, **options)
    begun.set_callbacks(Checkpoint(path, every=1))
    with pytest.raises(KeyboardInterrupt), watch(leave):
        begun.fit(cut(X, 400))
    resumed = lloydia.dask.KMeans.resume(path)
    assert resumed._left_off.halts[0].iteration == 4
    # On other workers, in other partitions.
    assert everything(resumed.fit(cut(X, 100, 20))) == answer(expected)


def test_functions_take_collections_too(current):
    X = blobs(500, 3, "float32")
    rows = cut(X, 100, 150)
    centers, indices = lloydia.kmeans_plusplus(rows, 5, random_state=2)
    assert (indices == lloydia.kmeans_plusplus(X, 5, random_state=2)[1]).all()
    assert (centers == X[indices]).all()
    labels, inertia = lloydia.assign(rows, centers)
    expected = lloydia.assign(X, centers)
    assert (labels.compute() == expected[0]).all()
    assert inertia == expected[1]
    unknown = rows[rows[:, 0] > 0]
    assert np.isnan(unknown.shape[0])
    model, local = KMeans(5, init="first"), X[X[:, 0] > 0]
    assert everything(model.fit(unknown)) == answer(KMeans(5, init="first").fit(local))
    assert (model.predict(unknown).compute() == model.predict(local)).all()
    # Centres of another type: both become float64.
    model = KMeans(5, init="first", max_iter=2).fit(X.astype(np.float64))
    assert model.score(rows) == model.score(X)


def test_data_frames_and_series(current):
    pd = pytest.importorskip("pandas")
    X, weights = blobs(600, 3, "float64"), weights_of("wide", 600)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["w"] = weights
    local = frame[frame.a > 0]
    expected = KMeans(4, random_state=0).fit(local[["a", "b", "c"]], sample_weight=local.w)
    far = dd.from_pandas(frame, npartitions=4)
    far = far[far.a > 0]
    rows = far[["a", "b", "c"]]
    model = KMeans(4, random_state=0).fit(rows, sample_weight=far.w)
    assert everything(model) == answer(expected)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert (model.predict(rows).compute() == expected.labels_).all()
    assert (model.transform(rows).compute() == expected.transform(local[["a", "b", "c"]])).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(far[["a", "b", "w"]])


def test_an_estimator_with_a_client_of_its_own(client):
    X = blobs(400, 3, "float32")
    model = lloydia.dask.KMeans(4, init="first", client=client).fit(cut(X, 100))
    with client.as_current():
        assert everything(model) == answer(KMeans(4, init="first").fit(X))
    assert model.score(cut(X)) == KMeans(4, init="first").fit(X).score(X)
    assert clone(model).client is client
    for other in (copy.copy(model), pickle.loads(pickle.dumps(model))):
        assert other.client is None
        assert not hasattr(other, "labels_")
        assert (other.predict(X) == KMeans(4, init="first").fit(X).labels_).all()
    with pytest.raises(TypeError, match=r"numpy.ndarray, and lloydia.dask.KMeans takes only Dask"):
        model.fit(X)
    with pytest.raises(RuntimeError, match="There is no Dask client"):
        lloydia.dask.KMeans(4).fit(cut(X))


def test_nothing_stays_on_the_workers(current):
    def known():
        return set(current.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)))

    before = known()
    model = KMeans(4, init="first").fit(cut(blobs(400, 3, "float32"), 100))
    assert known() - before
    del model
    gc.collect()
    deadline = time.monotonic() + 20
    while left := known() - before:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def broken(kind):
    X = blobs(300, 3, "float32")

    def spoil(block, block_info=None):
        if block_info[0]["chunk-location"][0] != 1:
            return block
        if kind == "nan":
            block[7, 2] = np.nan
        return {
            "width": block[:, :2], "type": block.astype(np.float64), "short": block[:-3],
            "long": np.concatenate([block, block]), "none": block[:0],
        }.get(kind, block)  # fmt: skip

    return cut(X, 100, 100).map_blocks(spoil, dtype=X.dtype, meta=X[:0])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nan", "Partition 1 of X: its row 7 has nan in column 2"),
        ("width", "Partition 1 of X has 2 features and partition 0 has 3"),
        ("type", "Partition 1 of X is read as float64 and partition 0 as float32"),
        ("short", "Partition 1 of X has 97 rows and X declares 100: .* X.compute_chunk_sizes"),
        ("long", "Partition 1 of X has 200 rows and X declares 100"),
        ("none", "Partition 1 of X has 0 rows and X declares 100"),
    ],
)
def test_rows_that_cannot_be_taken(current, kind, message):
    with pytest.raises(ValueError, match=message):
        KMeans(4).fit(broken(kind))


def test_all_partitions_of_another_width(current):
    rows = cut(blobs(30, 3, "float32"), 10).map_blocks(lambda block: block[:, :2])
    with pytest.raises(ValueError, match="Partition 0 of X has 2 features and X declares 3"):
        KMeans(4).fit(rows)


def test_lengths_that_nobody_declares_are_counted(current):
    X = blobs(300, 3, "float32")
    rows = broken("short")
    rows._chunks = ((np.nan,) * 3, (3,))
    whole = np.concatenate([X[:197], X[200:]])
    assert everything(KMeans(4, init="first").fit(rows)) == answer(
        KMeans(4, init="first").fit(whole)
    )


@pytest.mark.parametrize("kind", ["short", "long", "none"])
def test_predictions_of_partitions_that_are_not_as_declared(current, kind):
    model = KMeans(4, init="first").fit(blobs(300, 3, "float32"))
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match=r"Partition 1 of X has .* rows and X declares 100"):
            method(broken(kind)).compute()


def test_a_failed_fit_leaves_the_result_before_it(current):
    X = blobs(300, 3, "float32")
    frame = dd.from_dict({name: X[:, j] for j, name in enumerate("abc")}, npartitions=2)
    model = lloydia.dask.KMeans(4, init="first").fit(frame)
    before = dict(vars(model))
    for rows, weights in [
        (cut(X[:, :2], 100), -np.ones(300)),
        (broken("nan"), None),
        (cut(X[:2], 1), None),
    ]:
        with pytest.raises(ValueError, match=r"weight|finite|n_samples"):
            model.fit(rows, sample_weight=weights)
        assert dict(vars(model)) == before
    assert (model.predict(frame).compute() == model.labels_.compute()).all()


@pytest.mark.parametrize("labels", [list("abc"), [7, 6, 5]])
def test_columns_of_a_start_are_matched_by_name(current, labels):
    pd = pytest.importorskip("pandas")
    X = blobs(300, 3, "float64") * [1.0, 10.0, 100.0]
    frame = pd.DataFrame(X, columns=labels)
    expected = KMeans(4, init=X[:4], n_init=1).fit(X)
    found = KMeans(4, init=frame[:4][[labels[i] for i in (2, 0, 1)]], n_init=1)
    found.fit(dd.from_pandas(frame, npartitions=2))
    assert everything(found) == answer(expected)
    swapped = dd.from_pandas(frame[labels[::-1]], npartitions=2)
    with pytest.raises(ValueError, match=r"same order|another order"):
        found.predict(swapped).compute()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.arange(300).astype("M8[D]"), r"sample_weight holds datetime64\[D\]"),
        (np.full(300, "1"), "sample_weight holds text"),
        (np.ones(300, complex), "sample_weight holds complex128"),
        (np.full(300, None), r"sample_weight\[0\] is None"),
    ],
)
def test_weights_that_are_no_numbers(current, weights, message):
    rows = cut(blobs(300, 3, "float32"), 200)
    for given in (weights, da.from_array(weights, chunks=150)):
        with pytest.raises(ValueError, match=message):
            KMeans(4).fit(rows, sample_weight=given)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.arange(300.0) - 150, r"sample_weight\[0\] is -150.0"),
        (np.where(np.arange(300) == 250, np.nan, 1.0), r"sample_weight\[250\] is nan"),
        (np.zeros(300), "All sample weights are zero"),
        (np.ones(299), r"sample_weight.shape == \(299,\), expected \(300,\)"),
        (np.ones((300, 1)), "must be 1D array or scalar, got 2D"),
        (np.array([1e-300, *[1e300] * 299]), "lie too far apart"),
    ],
)
def test_weights_that_cannot_be_taken(current, weights, message):
    rows = cut(blobs(300, 3, "float32"), 200)
    for given in (weights, da.from_array(weights, chunks=150)):
        with pytest.raises(ValueError, match=message):
            KMeans(4).fit(rows, sample_weight=given)


def test_no_rows_and_too_few(current):
    rows = cut(blobs(30, 3, "float32"), 10)
    with pytest.raises(ValueError, match="X has no rows"):
        KMeans(4).fit(rows[:0])
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        KMeans(4).fit(rows[:3])
    with pytest.raises(ValueError, match="Expected 2D array"):
        KMeans(4).fit(rows[:, 0])


def test_workers_with_another_version(current, monkeypatch):
    monkeypatch.setattr(workers, "__version__", "9.9")
    message = r"has Lloydia \S+, and this process has Lloydia 9\.9: install"
    with pytest.raises(RuntimeError, match=message):
        KMeans(4).fit(cut(blobs(30, 3, "float32"), 10))


def test_no_workers(monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.2)
    rows = cut(blobs(30, 3, "float32"), 10)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"has had no worker for 0.2 s: start workers"):
            lloydia.dask.KMeans(4, client=client).fit(rows)
        # All leave while they are waited for.
        waiting = client.submit(sum, [1, 2])
        with pytest.raises(RuntimeError, match=r"has had no worker for 0.2 s: start workers"):
            workers.wait_for(client, [waiting])
