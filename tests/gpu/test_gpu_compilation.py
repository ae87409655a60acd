"""What fits compile, counted on a real GPU."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from threading import current_thread

import numpy as np
import pytest

from lloydia import KMeans, MiniBatchKMeans, k_means_batched
from lloydia.stopping import Labels

torch = pytest.importorskip("torch")

# What may be launched as rows are placed, before anything is asked of them.
MEASURING = {"magnitudes_kernel"}
FORMS = ((20_000, 64, 100, "float32"), (20_000, 3, 16, "float32"), (20_000, 3, 16, "float64"))


class Compiled:
    """The kernels that are compiled or loaded from disk, and the threads that do it."""

    def __init__(self):
        self.found = []

    def clear(self):
        settle()
        self.found.clear()

    @property
    def kernels(self):
        settle()
        return Counter(kernel for kernel, _ in self.found)

    @property
    def late(self):
        """What was not compiled ahead by the threads that do so."""
        assert self.kernels
        return {kernel for kernel, thread in self.found if thread != "lloydia-compiler"}


def settle():
    """Wait for what threads compile: also that which only later fits need."""
    from lloydia.backends.cuda.runtime import forms

    for kernel in list(forms._found.values()):
        if isinstance(kernel, Future):
            kernel.exception()


@pytest.fixture
def compiled(monkeypatch):
    from lloydia.backends.cuda.rows import found_grid
    from lloydia.backends.cuda.runtime import forms, relocation

    settle()
    # Begin with no kernel, and as if no rows had been fitted.
    monkeypatch.setattr(forms, "_found", {})
    monkeypatch.setattr(relocation, "_recorded", {})
    monkeypatch.setattr(found_grid, "_limbs", {})
    out, compiled_now = Compiled(), forms.compiled_now

    def noted(kernel, *rest):
        out.found.append((kernel.fn.__name__, current_thread().name))
        return compiled_now(kernel, *rest)

    monkeypatch.setattr(forms, "compiled_now", noted)
    yield out
    settle()


def rows(n, d, dtype, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(n, d, device="cuda", dtype=getattr(torch, dtype), generator=generator)


def fit(k, X, weights=None, **options):
    options = {"random_state": 0, "max_iter": 20, "n_init": 1, **options}
    KMeans(k, **options).fit(X, sample_weight=weights)


@pytest.mark.parametrize("n_d_k_dtype", FORMS, ids=str)
@pytest.mark.parametrize("more", [{}, {"tol": 0.0}, {"init": "random"}], ids=str)
def test_threads_compile_all_kernels_of_a_fit(compiled, n_d_k_dtype, more):
    n, d, k, dtype = n_d_k_dtype
    fit(k, rows(n, d, dtype), **more)
    assert len(compiled.kernels) > 5
    # float64 rows whose D may overflow are refused before the fit begins.
    assert compiled.late == (MEASURING if dtype == "float64" else set())


@pytest.mark.parametrize("n_d_k_dtype", FORMS, ids=str)
def test_other_arguments_compile_nothing(compiled, n_d_k_dtype):
    n, d, k, dtype = n_d_k_dtype
    X = rows(n, d, dtype)
    fit(k, X)
    compiled.clear()
    later = {}, {"random_state": 1}, {"max_iter": 3}, {"max_iter": 300}, {"tol": 0.0}
    for more in (*later, {"stop": Labels(0.01)}, {"empty": "keep"}):
        fit(k, X, **more)
    fit(k, rows(n, d, dtype, seed=1))
    assert not compiled.kernels


# What another start or weights need: how many kernels, at most.
STARTS = {"random": 2, "array": 2, "weights": 4}


@pytest.mark.parametrize("n_d_k_dtype", FORMS, ids=str)
@pytest.mark.parametrize("what", STARTS)
def test_second_and_third_fits_compile_nothing(compiled, n_d_k_dtype, what):
    n, d, k, dtype = n_d_k_dtype
    X = rows(n, d, dtype)
    weights = np.random.default_rng(0).integers(1, 5, size=n) / 4
    fit(k, X)
    compiled.clear()
    starts = {"random": "random", "array": X[:k]}
    more = {"weights": weights} if what == "weights" else {"init": starts[what]}
    fit(k, X, **more)
    most = STARTS[what] + 3 * (dtype == "float64")
    # One more is for later fits of such a start.
    assert compiled.kernels.total() <= most + 1, compiled.kernels
    compiled.clear()
    for seed in (1, 2):
        fit(k, rows(n, d, dtype, seed), **more)
    assert not compiled.kernels


@pytest.mark.parametrize(("d", "dtype"), [(3, "float32"), (64, "float32")])
def test_another_number_of_rows_needs_one_more_kernel(compiled, d, dtype):
    fit(16, rows(100_000, d, dtype))
    compiled.clear()
    for n in (1_000, 1_001, 4_096, 33_333, 100_001):
        fit(16, rows(n, d, dtype))
    assert compiled.kernels.total() <= 1, compiled.kernels


@pytest.mark.parametrize(("d", "dtype"), [(3, "float32"), (64, "float32")])
def test_nothing_is_compiled_for_almost_as_many_clusters(compiled, d, dtype):
    X = rows(20_000, d, dtype)
    fit(64, X)
    compiled.clear()
    for k in (63, 62, 60, 57):
        fit(k, X, max_iter=10)
    assert not compiled.kernels


# Sweeps over k, and which kernels they need that one fit does not have: those for other sizes.
SWEEPS = {
    3: ((2, 5, 17, 100, 333, 1000), {"assign_kernel", "savings_kernel", "update_kernel"}),
    768: ((64, 100, 257, 700, 1000), set()),
}


@pytest.mark.parametrize("d", SWEEPS)
def test_a_sweep_over_k_needs_few_kernels(compiled, d):
    X, (sweep, others) = rows(20_000, d, "float32"), SWEEPS[d]
    fit(16 if d == 3 else 512, X)
    compiled.clear()
    for k in sweep:
        fit(k, X, max_iter=5)
    assert compiled.kernels.keys() <= others
    assert compiled.kernels.total() <= len(others)
    compiled.clear()
    for k in sweep:
        fit(k, X, max_iter=5)
    assert not compiled.kernels


@pytest.mark.parametrize("d", [3, 64])
def test_threads_compile_what_predictions_and_mini_batches_need(compiled, d):
    X = rows(20_000, d, "float32")
    model = KMeans(16, device="cpu", random_state=0, n_init=1, max_iter=2)
    model.fit(X.cpu().numpy()).set_params(device="cuda")
    model.predict(X)
    model.transform(X)
    MiniBatchKMeans(16, random_state=0, n_init=1, init=X[:16]).partial_fit(X)
    assert compiled.late <= MEASURING


def test_members_of_a_batch_at_odd_addresses_compile_nothing(compiled):
    # Rows of 3 features are fitted one member after the other.  Members of 504 rows lie at
    # multiples of 16 bytes; of those of 505 rows, the first alone does.
    for n in (504, 505):
        compiled.clear()
        X = torch.stack([rows(n, 3, "float32", seed) for seed in range(3)])
        k_means_batched(X, 5, init=X[:, :5])
        assert bool(compiled.kernels) == (n == 504)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs several GPUs")
@pytest.mark.parametrize("d", [3, 64])
def test_threads_compile_for_several_gpus(compiled, d):
    X = rows(40_000, d, "float32").cpu().numpy()
    fit(16, X, device="cuda:0,1")
    assert compiled.late <= MEASURING
    compiled.clear()
    fit(16, X, device="cuda:0,1")
    assert not compiled.kernels
