"""Certified half-precision scans against the canonical labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.device_functions import run_state as state
from lloydia.backends.cuda.dispatch import Kernels, Stage
from lloydia.backends.cuda.matmul import scan as tensor_scan
from lloydia.backends.cuda.matmul.scan import TensorScan
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.protocols import LabelChanges
from lloydia.backends.cuda.rows.fp16_frame import RADIUS
from lloydia.backends.cuda.rows.fp16_rows import LARGEST_RESIDUAL
from lloydia.backends.cuda.runtime.launching import place
from lloydia.exact import distance
from nasty import FLAVOURS, rows_of


@pytest.fixture(autouse=True)
def few(request, take):
    """Have small shapes go through the stages of large ones; of FEW, the last in that before."""
    some = getattr(request, "param", False)
    take(Stage.RECHECK, Kernels.PAIRS if some else Kernels.PAIRS_THEN_ALL)


FEW = pytest.mark.parametrize("few", [False, True], indirect=True)


class Scanned:
    """One assignment, with what it counted."""

    def __init__(self, X: np.ndarray, C: np.ndarray, old: np.ndarray | None = None) -> None:
        device = place("cuda")
        rows = place_rows(X, None, "cuda")
        rows.halve()
        n = len(X)
        labels = torch.as_tensor(np.full(n, -1, np.int32) if old is None else old.copy()).to(device)
        changed_rows, changed_old = (torch.empty_like(labels) for _ in range(2))
        run_state = torch.zeros(state.SIZE, dtype=torch.int32, device=device)
        centers = torch.as_tensor(C).to(device)
        TensorScan(rows, len(C)).scan(
            centers, LabelChanges(labels, changed_rows, changed_old, run_state)
        )
        self.labels = labels.cpu().numpy()
        counts = run_state.cpu().numpy()
        self.n_ambiguous, self.n_doubt2 = (
            counts[state.N_AMBIGUOUS.value],
            counts[state.N_UNRESOLVED.value],
        )
        self.n_nine = counts[state.N_NINE.value]
        self.changed = changed_rows.cpu().numpy()[: counts[state.N_CHANGED.value]]
        self.old = changed_old.cpu().numpy()[: counts[state.N_CHANGED.value]]


def blobs(n: int, d: int, k: int, dtype: str = "float32", seed: int = 0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(k, d)) * 3
    X = (means[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)
    return X, (means + 0.1 * rng.normal(size=(k, d))).astype(dtype)


def check(X: np.ndarray, C: np.ndarray, old: np.ndarray | None = None) -> Scanned:
    scanned = Scanned(X, C, old)
    expected, _ = distance.nearest(X, C)
    np.testing.assert_array_equal(scanned.labels, expected)
    before = np.full(len(X), -1, np.int32) if old is None else old
    moved = np.flatnonzero(before != expected)
    order = np.argsort(scanned.changed)
    np.testing.assert_array_equal(scanned.changed[order], moved)
    np.testing.assert_array_equal(scanned.old[order], before[moved])
    return scanned


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [
        (300, 9, 2),
        (300, 16, 5),
        (257, 33, 64),
        (129, 100, 65),
        (64, 128, 140),
        (40, 300, 20),
        # Two tiles of centres of many features.
        (80, 300, 500),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_are_the_canonical_ones(n, d, k, dtype):
    scanned = check(*blobs(n, d, k, dtype))
    assert scanned.n_ambiguous < 0.05 * n


@FEW
def test_few_rows_are_left_after_the_second_stage():
    X = np.random.default_rng(1).normal(size=(600, 40)).astype(np.float32)
    scanned = check(X, X[:64])
    assert scanned.n_ambiguous > 5
    assert scanned.n_doubt2 <= 0.2 * scanned.n_ambiguous


def test_very_many_features_are_summed_in_groups():
    X, _ = blobs(40, 2100, 20)
    scanned = check(X, X[:20].copy())
    assert scanned.n_doubt2 <= 1


def test_half_precision_rows():
    X, C = blobs(200, 20, 7)
    check(X.astype(np.float16), C)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nasty_rows(flavour, dtype):
    X = rows_of(flavour, 150, 12, dtype, seed=3)
    with np.errstate(all="ignore"):
        check(X, np.ascontiguousarray(X[::13]))


def test_only_what_changed_is_listed():
    X, C = blobs(300, 24, 10)
    old, _ = distance.nearest(X, C)
    old[::7] = (old[::7] + 1) % 10
    scanned = check(X, C, old)
    assert len(scanned.changed) == len(range(0, 300, 7))


@FEW
@pytest.mark.parametrize("every", [7, 1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_not_finite_get_no_label_beyond_the_last(value, every):
    """They are refused when they are added up: what comes before counts by their labels."""
    X, C = blobs(120, 12, 40)
    X[::every, 3] = value
    with np.errstate(all="ignore"):
        labels = Scanned(X, C).labels
    assert labels.min() >= -1
    assert labels.max() < 40


@FEW
@pytest.mark.parametrize("d", [17, 70])
def test_ties_and_near_ties(d):
    """Duplicated centres tie everywhere; one last bit between two decides canonically."""
    X, C = blobs(200, d, 6)
    C = np.concatenate([C, C[::-1]])
    check(X, C)
    C[6:] = np.nextafter(C[6:], np.float32(np.inf))
    check(X, C)


@FEW
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_rows_between_three_centres(share):
    """Few of them have records; where all rows are such there is no place for these."""
    X, C = blobs(300, 17, 20)
    near = np.arange(int(share * 20))
    away = np.random.default_rng(5).normal(size=(2, len(near), 17)) * 1e-3
    scanned = check(X, np.concatenate([C, *(C[near] + away).astype(np.float32)]))
    assert scanned.n_nine > 40
    if share < 1:
        assert scanned.n_doubt2 < 0.2 * scanned.n_nine
    else:
        assert scanned.n_doubt2 == scanned.n_ambiguous == 300


def test_an_offset_costs_nothing_and_outlying_centres_little():
    X, C = blobs(400, 16, 8)
    X, C = X + np.float32(1000), C + np.float32(1000)
    assert check(X, C).n_ambiguous < 20
    C = np.concatenate([C, [[1e30] * 16, [1e5] * 16]]).astype(np.float32)
    assert check(X, C).n_ambiguous < 20


@FEW
def test_rows_beyond_half_precision_stay_in_doubt():
    X, C = blobs(200, 10, 4)
    X[::50] *= np.float32(1e20)
    scanned = check(X, C)
    assert 4 <= scanned.n_ambiguous < 20


def test_mostly_equal_rows_do_not_mislead_the_frame():
    X, C = blobs(300, 12, 4)
    X[:200] = 0.0
    C[0] = 0.0
    assert check(X * 1e4, C * 1e4).n_ambiguous < 30
    assert check(np.ones((40, 10), np.float32), np.zeros((2, 10), np.float32)).n_ambiguous == 40


def tight() -> tuple[np.ndarray, np.ndarray]:
    """Return rows that are mostly 0, so that few reach R, and near ties far out between two."""
    d = 16
    y = float(np.float16(0.225))
    x = np.full(d, y + 0.45 * 2.0**-13)
    away = np.random.default_rng(0).uniform(-1, 1, (20, d))
    away *= (10 / np.abs(away).max(axis=1))[:, None]
    others = np.concatenate([away, -away, *[[x, -x]] * 8])
    X = np.zeros((800, d))
    X[3 : 3 + 6 * len(others) : 6] = others  # the rows of the sample are 0
    farther = np.full(d, 2 * y)
    farther[:3] += 2.0**-12
    near = [np.full(d, -float(np.float16(0.01 * (1 + i / 40)))) for i in range(30)]
    return X.astype(np.float32), np.stack([np.zeros(d), farther, *near]).astype(np.float32)


def test_all_rows_within_the_radius_count_for_the_bounds():
    X, C = tight()
    check(X, C)
    rows = place_rows(X, None, "cuda")
    rows.halve()
    fp16_rows = rows.fp16_rows
    norm, residual = fp16_rows.norm.cpu().numpy(), fp16_rows.residual.cpu().numpy()
    numbers = fp16_rows.numbers[0].cpu().numpy()
    inside = norm + residual <= numbers[RADIUS.value]
    assert numbers[RADIUS.value] == 1.0
    assert numbers[LARGEST_RESIDUAL.value] >= residual[inside].max() > 0


def test_heavy_tails_leave_few_rows_in_doubt():
    rng = np.random.default_rng(4)
    X = rng.standard_t(2.0, size=(600, 10)).astype(np.float32)
    scanned = check(X, X[:20])
    assert scanned.n_ambiguous < 150
    assert scanned.n_doubt2 < 60


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [12, 40])
def test_where_centres_are_few_one_stage_follows(d, dtype, take, monkeypatch):
    take(Stage.RECHECK, Kernels.ALL)
    monkeypatch.setattr(tensor_scan, "nominate", None)
    X, C = blobs(300, d, 40, dtype)
    X[::10] = (C[:30] + C[1:31]) / 2
    scanned = check(X, np.concatenate([C, C[:1]]))
    assert 20 <= scanned.n_ambiguous < 60
    rows = place_rows(X, None, "cuda")
    rows.halve()
    scan = TensorScan(rows, 41)
    parts, zeros = scan.memory
    assert not {"candidates", "unresolved", "recheck_exact"} & set(vars(scan))
    assert {id(part) for part in zeros} < {id(part) for part in parts}


def test_a_halted_iteration_changes_nothing():
    X, C = blobs(50, 12, 3)
    device = place("cuda")
    labels = torch.full((50,), -1, dtype=torch.int32, device=device)
    run_state = torch.zeros(state.SIZE, dtype=torch.int32, device=device)
    run_state[state.STOPPED.value] = 1
    spare = torch.empty_like(labels)
    rows = place_rows(X, None, "cuda")
    changes = LabelChanges(labels, spare, spare.clone(), run_state)
    rows.halve()
    TensorScan(rows, 3).scan(torch.as_tensor(C).to(device), changes)
    assert (labels == -1).all()
    assert int(run_state.sum()) == 1


@FEW
def test_ties_between_tiles_of_centres_go_to_the_lowest_index(few):
    """No candidates are named, and each tile has the same nearest centres."""
    X = rows_of("gauss", 4, 9, "float32", seed=2)
    scanned = check(X, np.tile(X[:2], (150, 1)))
    assert scanned.n_doubt2 > 0


@pytest.mark.parametrize("kernels", [Kernels.ALL, Kernels.PAIRS, Kernels.PAIRS_THEN_ALL])
@pytest.mark.parametrize("d", [12, 300])
def test_the_kernels_of_every_number_of_rows_are_the_same(kernels, d, take, monkeypatch):
    """A kernel is compiled once more for an address that is no multiple of 16 bytes."""
    if torch.cuda.is_available():
        pytest.skip("launches are seen in the interpreter only")
    from triton.runtime import interpreter

    take(Stage.RECHECK, kernels)
    names, launch = [], interpreter.GridExecutor.__call__

    def noted(executor, *args, **options):
        tensors = [x for x in (*args, *options.values()) if isinstance(x, torch.Tensor)]
        assert all(x.data_ptr() % 16 == 0 for x in tensors), executor.fn
        names.append(executor.fn)
        launch(executor, *args, **options)

    monkeypatch.setattr(interpreter.GridExecutor, "__call__", noted)
    for n in (8, 9, 10, 11):
        Scanned(*blobs(n, d, 5))
    assert len(names) >= 4 * 4
