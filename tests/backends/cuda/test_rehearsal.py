"""A rehearsal compiles the forms of kernels that the fit launches, and no others."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lloydia import KMeans, MiniBatchKMeans, k_means_batched
from lloydia.backends.cuda import rehearsal
from lloydia.backends.cuda.batched import rehearsal as batched_rehearsal
from lloydia.backends.cuda.batched.rehearsal import make_batch
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.multi_gpu.gpus import make_parted_run
from lloydia.backends.cuda.rehearsal import (
    KnownAtStart,
    absent,
    forms_now_and_later,
    forms_of,
    like,
    make_run,
    rehearse,
)
from lloydia.backends.cuda.rows import found_grid
from lloydia.backends.cuda.runtime import devices, launching
from lloydia.backends.engine import ExpectedRun
from lloydia.backends.parts import Parts
from lloydia.stopping import Inertia, Shift


@pytest.fixture
def launched(monkeypatch):
    """Return the forms that a fit launches after its rehearsal, and those that it rehearses."""
    forms, rehearsed, form_of = {}, {}, launching.form_of

    def noted(*args):
        form, places = form_of(*args)
        if launching.collected() is None:
            forms[id(form.kernel), form.key] = form
        return form, places

    def compiling(engine, work):
        if not engine.data.X.is_meta:
            forms.clear()
            now = forms_now_and_later(engine.data, KnownAtStart.of(engine.data), work)
            rehearsed.update(next(now))
        return nullcontext()

    def expecting(engine, run):
        forms.clear()
        at_start = [KnownAtStart.of(part.data) for part in engine.group.parts]
        rehearsed.update(forms_of(lambda: make_parted_run(engine.group, at_start, run)))
        return nullcontext()

    monkeypatch.setattr(launching, "form_of", noted)
    monkeypatch.setattr(CUDA, "_compiling", compiling)
    monkeypatch.setattr(Parts, "expecting", expecting)
    return forms, rehearsed


def names(forms):
    return Counter(form.kernel.fn.__name__ for form in forms)


def rows(n, d, k, dtype):
    """Return rows in which a row changes its cluster in some iterations."""
    rng = np.random.default_rng(0)
    X = 4 * rng.random((k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    return X.astype(dtype)


@pytest.mark.parametrize(
    ("d", "k", "dtype"), [(3, 5, "float32"), (16, 20, "float32"), (16, 20, "float64")]
)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tol": 0.0, "weighted": True},
        {"init": "k-means||"},
        {"n_init": 2, "stop": Shift(1e-3)},
        {"init": "random", "n_init": 1, "empty": "keep", "max_iter": 2},
        {"init": "random", "n_init": 1, "stop": Inertia(0.01)},
    ],
    ids=str,
)
def test_a_fit_launches_what_was_rehearsed(launched, d, k, dtype, more):
    forms, rehearsed = launched
    options = {"max_iter": 4, "random_state": 0, **more}
    weights = np.random.default_rng(1).random(300) if options.pop("weighted", False) else None
    X = rows(300, d, k, dtype)
    KMeans(k, device="cuda", **options).fit(X, sample_weight=weights)
    assert differences(forms, rehearsed) == (set(), set())


def differences(forms, rehearsed):
    """Return the names of kernels that were launched without a rehearsal, and the opposite."""
    late = names(form for key, form in forms.items() if key not in rehearsed)
    return set(late), set(names(form for key, form in rehearsed.items() if key not in forms))


@pytest.mark.parametrize("d", [3, 16])
@pytest.mark.parametrize("init", ["array", "random", "k-means++"])
def test_later_fits_of_a_shape_launch_what_the_first_one_has_rehearsed(launched, d, init):
    forms, _ = launched
    X, expected = rows(300, d, 5, "float32"), []
    start = X[:5] if init == "array" else init
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CUDA, "expecting", lambda engine, run: expected.append(run) or nullcontext())
        model = KMeans(5, device="cuda", init=start, n_init=1, max_iter=4, random_state=0)
        data = CUDA(X, None, "cuda").data
        data.in_range = True
        model.fit(X)
        every = {}
        found_grid._limbs.clear()
        at_start = KnownAtStart.of(data)
        for some in forms_now_and_later(
            data, at_start, lambda engine: make_run(engine, expected[0])
        ):
            every |= some
        # The second and the third know how many limbs the first has needed.
        model.fit(X)
        for _ in range(2):
            forms.clear()
            model.fit(X[::-1])
            assert differences(forms, every)[0] == set()


@pytest.mark.parametrize("d", [3, 16])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"weighted": True},
        {"init": "random", "tol": 0.0},
        {"init": "farthest"},
        {"init": "k-means||"},
    ],
    ids=str,
)
def test_several_gpus_launch_what_was_rehearsed(launched, monkeypatch, d, more):
    monkeypatch.setattr(devices, "_count", lambda: 2)
    forms, rehearsed = launched
    options = {"max_iter": 4, "n_init": 1, "random_state": 0, **more}
    weights = np.random.default_rng(1).random(300) if options.pop("weighted", False) else None
    KMeans(5, device="cuda:0,1", **options).fit(rows(300, d, 5, "float32"), sample_weight=weights)
    assert len(forms) > 8
    late, unused = differences(forms, rehearsed)
    # Costs are measured as variances are.
    assert late == set()
    assert len(unused) <= 1


@pytest.mark.parametrize(
    "more",
    [{}, {"tol": 0.0}, {"init": "random", "empty": "keep"}, {"init": "array"}],
    ids=str,
)
def test_a_batch_launches_what_was_rehearsed(launched, monkeypatch, device, more):
    forms, rehearsed = launched

    def compiling(*batch):
        forms.clear()
        rehearsed.update(forms_of(lambda: make_batch(*batch)))
        return nullcontext()

    monkeypatch.setattr(batched_rehearsal, "compiling", compiling)
    # The rows of the second item begin at no multiple of 16 bytes.
    X = torch.as_tensor(np.stack([rows(301, 9, 5, "float32")] * 3), device=device)
    options = {"max_iter": 4, "random_state": 0, **more}
    if options.get("init") == "array":
        options["init"] = X[:, :5]
    k_means_batched(X, 5, **options)
    late, unused = differences(forms, rehearsed)
    # Labels are counted after the fit where a cluster may have no row.
    assert late <= {"seen_kernel"}
    assert len(forms) > 8
    # Not every batch has a limit, or starts beside it.
    assert len(unused) <= 2


@pytest.mark.parametrize("d", [3, 16])
def test_rows_of_a_prediction_are_assigned_by_what_was_rehearsed(launched, d):
    forms, rehearsed = launched
    X = rows(300, d, 5, "float32")
    model = KMeans(5, device="cpu", random_state=0, n_init=1).fit(X).set_params(device="cuda")
    for predict in (model.predict, model.transform):
        rehearsed.clear()
        predict(X)
        assert forms
        assert differences(forms, rehearsed) == (set(), set())


@pytest.mark.parametrize("d", [3, 16])
def test_a_mini_batch_launches_what_was_rehearsed(launched, d):
    forms, rehearsed = launched
    X = rows(300, d, 5, "float32")
    model = MiniBatchKMeans(5, device="cuda", random_state=0, n_init=1, init=X[:5])
    model.partial_fit(X)
    assert forms
    late, _ = differences(forms, rehearsed)
    assert late == set()


def test_work_is_rehearsed_as_it_began(launched, monkeypatch):
    (forms, rehearsed), learnt = launched, []

    @contextmanager
    def rehearsed_late(engine, work):
        """Rehearse work when more is known of the rows than when it began."""
        at_start = KnownAtStart.of(engine.data)
        yield
        if not engine.data.X.is_meta:
            learnt.append(engine.data.knows_magnitudes > at_start.magnitudes)
            rehearsed.update(next(forms_now_and_later(engine.data, at_start, work)))

    monkeypatch.setattr(CUDA, "_compiling", rehearsed_late)
    X = rows(300, 16, 5, "float32")
    MiniBatchKMeans(5, device="cuda", random_state=0, n_init=1, init=X[:5]).partial_fit(X)
    assert any(learnt)
    assert "finish_kernel" in names(forms.values())
    assert differences(forms, rehearsed)[0] == set()


def test_what_fails_in_a_rehearsal_fails_no_fit(monkeypatch):
    def fail(engine):
        launching.launch(kernel, (1,), engine.data.X, 3)
        raise RuntimeError("only in a rehearsal")

    kernel = SimpleNamespace(kwargs=dict.fromkeys(launching.SAME), arg_names=("X", "n"))
    data = CUDA(rows(30, 3, 5, "float32"), None, "cuda").data
    # What was launched before is compiled.
    assert len(forms_of(lambda: fail(like(data, KnownAtStart.of(data))))) == 1
    tried = []
    monkeypatch.setattr(rehearsal, "compile_together", lambda *args: tried.append(args) or 1 / 0)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    begin = rehearse(data, fail)
    begin()
    begin()
    assert len(tried) == 1


def test_what_is_rehearsed_has_the_alignment_of_the_rows():
    x = torch.zeros(65, dtype=torch.float32)[1:].view(16, 4)
    for one in (x, x.view(-1)[3:15].view(3, 4), torch.zeros(3, 4)):
        other = absent(one)
        assert (other.shape, other.dtype) == (one.shape, one.dtype)
        assert other.data_ptr() % 16 == one.data_ptr() % 16


def test_a_rehearsal_leaves_nothing_for_later_fits(launched):
    from lloydia.backends.cuda.runtime import relocation

    X = rows(300, 16, 5, "float32")
    before = dict(relocation._recorded), dict(found_grid._limbs)
    expected = ExpectedRun(lambda engine: X[:5], 1e-4, False, True, 4)
    data = CUDA(X, None, "cuda").data
    assert forms_of(lambda: make_run(like(data, KnownAtStart.of(data)), expected))
    assert (relocation._recorded, found_grid._limbs) == before
