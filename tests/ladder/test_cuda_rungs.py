"""The ladder's rungs on a GPU, each against rung 0; in the simulator where there is no GPU.

In the simulator a thread of the host stands for a thread of the GPU, and a barrier takes
milliseconds: problems are tiny there.
"""

import sys

import numpy as np
import pytest

from lloydia import ladder
from lloydia.ladder import r00_reference, r64_float_sums
from lloydia.stopping import Centers, Inertia, Labels

pytest.importorskip("numba_cuda")
pytest.importorskip("cuda.bindings")
pytestmark = [pytest.mark.interpreter, pytest.mark.usefixtures("swift")]

RUNGS = [name for name in ladder.names() if ladder.where(name) == "cuda"]
KERNELS = [name for name in RUNGS if name != "r31_engine_cuda"]
STAGED = ["r14_shared_centers", "r15_all_on_gpu", "r22_masked_trees", "r21_chunked_hamerly"]
CHUNKED = ["r19_chunked_lloyd", "r20_chunked_elkan", "r21_chunked_hamerly"]
CLOSE = {np.float64: 1e-12, np.float32: 1e-5}


def gpu():
    from numba import cuda

    return hasattr(cuda, "cudadrv") and "simulator" not in cuda.cudadrv.__name__


def climb(name, X, centers, rule, max_iter, **options):
    return ladder.named(name).fit(X, centers, rule=rule, max_iter=max_iter, **options)


def same(found, wanted, dtype=np.float64):
    assert found.n_iter == wanted.n_iter
    np.testing.assert_array_equal(found.labels, wanted.labels)
    assert found.labels.dtype == np.int32
    assert found.centers.dtype == dtype
    np.testing.assert_allclose(found.centers, wanted.centers, rtol=0, atol=CLOSE[dtype])


def normal(n, d, k, dtype=np.float64):
    X = np.random.default_rng(n).normal(size=(n, d)).astype(dtype)
    return X, X[:k].copy()


def test_no_two_have_one_number():
    assert len({name[:3] for name in ladder.names()}) == len(ladder.names())
    assert set(RUNGS) == {name for name in ladder.names() if ladder.where(name) == "cuda"}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
def test_rungs_agree_with_the_first(name, dtype):
    X, centers = normal(5000, 5, 40, dtype) if gpu() else normal(41, 2, 2, dtype)
    start, most = centers.copy(), 9 if gpu() else 3
    wanted = r00_reference.fit(X, centers, rule=Labels(), max_iter=most)
    for block in (32, 64, 128, 256, 512, 1024) if gpu() else (32,):
        found = climb(name, X, centers, Labels(), most, block=block)
        same(found, wanted, dtype)
    np.testing.assert_array_equal(centers, start)
    assert found.seconds > 0


@pytest.mark.parametrize("name", KERNELS)
def test_ties_go_to_the_lowest_and_an_empty_cluster_keeps_its_centre(name):
    # Small integers: all arithmetic is exact, whatever the order and with fused additions or not.
    X = np.random.default_rng(0).integers(0, 3, (45, 3)).astype(np.float64)
    centers = np.array([[0, 0, 0], [2, 2, 2], [90, 90, 90], [2, 2, 2.0]])
    wanted = r00_reference.fit(X, centers, rule=None, max_iter=1)
    found = climb(name, X, centers, None, 1, block=64)
    same(found, wanted)
    np.testing.assert_array_equal(found.centers[2:], centers[2:])


@pytest.mark.parametrize("name", KERNELS)
def test_one_point_of_one_feature(name):
    X = np.array([[3.5]])
    found = climb(name, X, X + 1, Labels(), 5, block=32)
    same(found, r00_reference.fit(X, X + 1, rule=Labels(), max_iter=5))
    assert found.n_iter == 2


# Those that compare labels or centres on the host, and on the GPU by atomics or a tree.
RULED = ["r10_naive", "r11_distance_matrix", "r12_atomics", "r16_tree_lloyd"]
RULED += ["r50_counted_changes", "r51_reduced_moves"]
# A; B; C; and two at once.  Rungs that count changes on the host, by atomics and by a tree.
RULES = [Inertia(drop=2.0), Labels(fraction=0.2), Centers(atol=0.2), Inertia(1.0) | Centers(0.1)]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", RULED)
def test_stop_rules(name, rule):
    X, centers = normal(45, 2, 3)
    wanted = r00_reference.fit(X, centers, rule=rule, max_iter=20)
    assert 1 < wanted.n_iter < 20
    same(climb(name, X, centers, rule, 20, block=32), wanted)


@pytest.mark.parametrize(("k", "width"), [(2, 128), (128, 128), (129, 256)])
def test_sums_of_two_features_lie_512_bytes_apart(k, width):
    sums = r64_float_sums.apart(np.zeros((k, 3), np.float32)).copy_to_host()
    assert sums.shape == (3, width)
    assert not sums.any()


@pytest.mark.parametrize("name", STAGED[:2])
def test_more_centers_than_shared_memory_holds(name, monkeypatch):
    X, centers = normal(40, 2, 35 if gpu() else 3)
    monkeypatch.setattr("lloydia.ladder.staging.SHARED_BYTES", 16)  # one centre
    found = climb(name, X, centers, None, 2, block=32)
    same(found, r00_reference.fit(X, centers, rule=None, max_iter=2))


@pytest.mark.parametrize("name", CHUNKED)
def test_chunks_of_one(name, monkeypatch):
    X, centers = normal(20, 2, 3)
    monkeypatch.setattr("lloydia.ladder.chunks.capacity", lambda centers, most: 1)
    monkeypatch.setattr("lloydia.ladder.point_chunks.room", lambda *_, **__: 7)
    found = climb(name, X, centers, None, 3, block=32)
    same(found, r00_reference.fit(X, centers, rule=None, max_iter=3))


@pytest.mark.parametrize("m", [2, 63, 64, 65, 131])
def test_folds_take_as_many_rounds_as_they_need(m):
    """A round folds 64 numbers with blocks of 32."""
    from lloydia.ladder.folds import Fold, cuda, fold_largest, fold_sum

    rows = np.random.default_rng(m).integers(0, 99, (1, 2, m)).astype(np.int32)
    for kernel, wanted in ((fold_sum, rows.sum(axis=2)), (fold_largest, rows.max(axis=2))):
        numbers = cuda.to_device(rows)
        Fold(kernel, numbers, 32).queue()
        np.testing.assert_array_equal(numbers.copy_to_host()[..., 0], wanted)


def test_triples_of_many_chunks(monkeypatch):
    """Of equal distances the lower centre wins; the second is the least of what is left."""
    from lloydia.ladder.chunks import Chunks, cuda
    from lloydia.ladder.device import Placed
    from lloydia.ladder.r21_chunked_hamerly import settle

    monkeypatch.setattr("lloydia.ladder.chunks.capacity", lambda centers, most: 1)
    X = np.zeros((2, 1))
    chunks = Chunks(Placed(X, np.zeros((70, 1)), 32))
    D = np.random.default_rng(0).permutation(140).reshape(2, 70).astype(float) + 1
    D[0, [9, 68]] = 0.25
    chunks.nearest.copy_to_device(np.tile(np.arange(70, dtype=np.int32), (1, 2, 1)))
    chunks.distances.copy_to_device(np.stack([D, np.full_like(D, np.inf)]))
    upper, lower, marked = (cuda.to_device(each) for each in (*np.zeros((2, 2)), np.ones(2, bool)))
    labels, flags = (cuda.to_device(each) for each in np.zeros((2, 2), np.int32))
    chunks.fold(settle, marked, upper, lower, labels, flags)
    assert labels.copy_to_host().tolist() == [9, D[1].argmin()]
    np.testing.assert_array_equal(upper.copy_to_host() ** 2, D.min(axis=1))
    np.testing.assert_allclose(lower.copy_to_host() ** 2, [0.25, np.sort(D[1])[1]])


def test_means_of_many_chunks_of_points(monkeypatch):
    from lloydia.ladder.device import Placed, cuda
    from lloydia.ladder.point_chunks import PointChunks

    monkeypatch.setattr("lloydia.ladder.point_chunks.room", lambda *_, **__: 1)
    monkeypatch.setattr("lloydia.ladder.point_chunks.SHARED_BYTES", 2048 * 4 + 64 * 8 * 2)
    X = np.random.default_rng(0).normal(size=(70, 3))  # of which two features fold together
    on = Placed(X, np.zeros((3, 3)), 32)
    labels = np.arange(70, dtype=np.int32) % 2
    on.labels = cuda.to_device(labels)
    sums = PointChunks(on)
    sums.means()
    wanted = [X[labels == 0].mean(axis=0), X[labels == 1].mean(axis=0), np.zeros(3)]
    np.testing.assert_allclose(on.centers.copy_to_host(), wanted, rtol=1e-12)
    np.testing.assert_allclose(sums.moved.copy_to_host(), np.linalg.norm(wanted, axis=1))


@pytest.mark.parametrize("name", ["r17_tree_elkan", "r20_chunked_elkan"])
def test_the_first_bound_that_fails_ends_the_loop(name):
    """Of a point that must be measured anew no later bound is touched."""
    rung = ladder.named(name)
    labels, moved = np.zeros(4, np.int32), np.array([1.0, 3.0, 3.0, 3.0])
    upper, lower = np.full(4, 1.0), np.full((4, 4), 4.0)
    lower[0], lower[1, 2] = 40.0, 0.5  # all bounds of point 0 hold; point 1 fails at centre 1
    rows = [rung.cuda.to_device(each) for each in (labels, moved, upper, lower)]
    if name == "r17_tree_elkan":
        marked = rung.cuda.to_device(np.zeros(4, bool))
        rung.follow[1, 32](*rows[:2], 1.0, 1.0, *rows[2:], marked)
    else:
        marked = rung.cuda.to_device(np.zeros((1, 4, 1), np.int32))
        rung.raise_upper[1, 32](*rows[:2], 1.0, rows[2])
        rung.follow[(1, 1), 32, 0, 32](*rows[:2], 4, 1.0, 1.0, *rows[2:], marked)
    after = rows[3].copy_to_host()
    assert marked.copy_to_host().ravel().tolist() == [0, 1, 1, 1]
    assert rows[2].copy_to_host().tolist() == [2.0] * 4
    assert after[0].tolist() == [40.0, 37.0, 37.0, 37.0]
    assert after[1].tolist() == [4.0, 1.0, 0.5, 4.0]


@pytest.mark.parametrize("most", [4, 16, 1024])
def test_masked_trees_with_more_rows_or_clusters_than_a_block_has_threads(most, monkeypatch):
    X, centers = normal(130, 3, 5)
    monkeypatch.setattr("lloydia.ladder.r22_masked_trees.THREADS", most)
    found = climb("r22_masked_trees", X, centers, None, 2, block=32)
    same(found, r00_reference.fit(X, centers, rule=None, max_iter=2))


def test_more_clusters_than_the_array_of_trees_holds(monkeypatch):
    X, centers = normal(40, 2, 5)
    monkeypatch.setattr("lloydia.ladder.trees.MOST_BYTES", 40 * 20 * 2)  # two clusters
    found = climb("r16_tree_lloyd", X, centers, None, 2, block=32)
    same(found, r00_reference.fit(X, centers, rule=None, max_iter=2))


@pytest.mark.parametrize("name", ["r10_naive", "r13_transposed", "r14_shared_centers"])
def test_phases_add_up(name):
    X, centers = normal(64, 2, 3)
    found = climb(name, X, centers, Labels(), 3, block=32)
    assert set(found.phases) == {"upload", "kernels", "download", "host"}
    assert 0 < sum(found.phases.values()) <= found.seconds
    assert min(found.phases.values()) > 0


def test_kernels_are_timed_apart_where_that_is_asked():
    X, centers = normal(64, 2, 3)
    found = climb("r11_distance_matrix", X, centers, None, 2, block=32, by_kernel=True)
    assert list(found.phases) == ["distances", "minimum", "zero", "sums", "divide"]
    if gpu():  # The simulator's events tell no time.
        assert 0 < sum(found.phases.values()) <= found.seconds * 1.1


@pytest.mark.parametrize("block", [0, 31, 48, 2048])
def test_blocks_that_are_refused(block):
    X, centers = normal(10, 2, 2)
    with pytest.raises(ValueError, match=f"block={block} must be a power of two from 32 to 1024"):
        climb("r12_atomics", X, centers, None, 1, block=block)


@pytest.mark.parametrize("name", STAGED)
def test_a_centre_that_no_block_can_hold(name):
    X = np.zeros((3, 48 * 1024 // 8 + 1))
    with pytest.raises(ValueError, match="A centre of 6145 features in float64 takes more than"):
        climb(name, X, X[:1], None, 1)


def test_a_matrix_that_does_not_fit(monkeypatch):
    from lloydia.ladder.device import cuda

    info = type("Info", (), {"free": 1000})
    context = type("Context", (), {"get_memory_info": lambda self: info})
    monkeypatch.setattr(cuda, "current_context", context)
    X, centers = normal(64, 2, 3)
    with pytest.raises(MemoryError, match=r"64 x 3 distances take 0\.0 GiB"):
        climb("r11_distance_matrix", X, centers, None, 1)


def test_no_gpu(monkeypatch):
    from lloydia.ladder.device import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: False)
    X, centers = normal(10, 2, 2)
    with pytest.raises(RuntimeError, match="no NVIDIA GPU that numba-cuda can use"):
        climb("r12_atomics", X, centers, None, 1)


def test_no_numba_cuda(monkeypatch):
    from lloydia.ladder import device

    # Both come back: the module, and what its package knows it by.
    monkeypatch.setattr(ladder, "device", device)
    monkeypatch.delitem(sys.modules, "lloydia.ladder.device")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    from lloydia.ladder.device import Placed

    with pytest.raises(ImportError, match=r"pip install numba-cuda"):
        Placed(np.zeros((2, 2)), np.zeros((1, 2)), 32)


def test_the_engine():
    if not gpu():
        pytest.skip("the engine's kernels are tested in tests/backends/cuda")
    for rule in (Labels(), None, Labels(fraction=0.2)):
        X, centers = normal(500, 3, 7)
        wanted = r00_reference.fit(X, centers, rule=rule, max_iter=30)
        same(climb("r31_engine_cuda", X, centers, rule, 30), wanted)
