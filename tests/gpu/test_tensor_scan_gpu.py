"""What only a GPU can show: the model of its matrix units, and scans of many rows."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

import triton.language as tl  # noqa: E402

from lloydia.backends.cuda.device_functions import run_state as state  # noqa: E402
from lloydia.backends.cuda.dispatch import Kernels  # noqa: E402
from lloydia.backends.cuda.matmul.packed_top_two import slots_of, unpacked  # noqa: E402
from lloydia.backends.cuda.matmul.scan import TensorScan  # noqa: E402
from lloydia.backends.cuda.placement import place_rows  # noqa: E402
from lloydia.backends.cuda.protocols import LabelChanges  # noqa: E402
from lloydia.backends.cuda.runtime.hopper import has_gluon  # noqa: E402
from lloydia.exact.half_certificate import summation  # noqa: E402


def uniform(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, device="cuda", generator=torch.Generator("cuda").manual_seed(1))


@pytest.mark.parametrize("depth", [16, 64, 256, 1024])
@pytest.mark.parametrize("kind", ["positive", "one large", "signed", "falling"])
def test_a_matrix_units_sum_is_within_the_bound(depth, kind):
    """Many products of one sign lose the most when each addend is cut off."""
    A, B = uniform(512, depth) + 0.5, uniform(depth, 512) + 0.5
    if kind == "one large":
        A, B = A * 2.0**-12, B * 2.0**-12
        A[:, 0], B[0] = 1.0, 1.9
    elif kind == "signed":
        A, B = A - 1.0, B - 1.0
    elif kind == "falling":
        A = A * torch.logspace(0, -6, depth, device="cuda")
    A, B = A.half(), B.half()
    total = torch.mm(A, B, out_dtype=torch.float32).double()
    error = (total - A.double() @ B.double()).abs()
    assert bool((error <= summation(depth, depth) * (A.double().abs() @ B.double().abs())).all())


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [
        (1 << 20, 128, 1024), (1 << 20, 16, 64), (300_001, 64, 256), (300_001, 64, 257),
        (200_003, 32, 3000), (100_001, 768, 1000), (50_001, 200, 300), (20_001, 9, 2),
        (1 << 17, 20, 100_000), (4099, 8192, 33),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_sampled_labels_are_nearest(n, d, k, dtype):
    X = ((uniform(n, d) - 0.5) + 4 * (uniform(n, 1) - 0.5) * (uniform(1, d) - 0.5)).to(dtype)
    rows = place_rows(X, None, "cuda")
    C = X[torch.randperm(n, device="cuda")[:k]].to(rows.wide).contiguous()
    labels, changed_rows, changed_old = (
        torch.full((n,), -1, dtype=torch.int32, device="cuda") for _ in range(3)
    )
    run_state = torch.zeros(state.SIZE, dtype=torch.int32, device="cuda")
    changes = LabelChanges(labels, changed_rows, changed_old, run_state)
    rows.halve()
    TensorScan(rows, k).scan(C, changes)
    assert int(run_state[state.N_CHANGED.value]) == n
    # Most rows lie between two centres or fewer, though these are crowded along a line.
    left = run_state[[state.N_UNRESOLVED.value, state.N_RECHECKED.value]]
    assert int(left.max()) <= 0.05 * n
    assert bool((changed_rows.sort().values == torch.arange(n, device="cuda")).all())
    for i in torch.randint(0, n, (200,)).tolist():
        D = (X[i].double() - C.double()).square().sum(1)
        # The sum is not in the canonical order: equal to rounding.
        assert float(D[labels[i]]) <= float(D.min()) * (1 + 1e-12)


@triton.jit
def tell(source, column, least, others, slots, columns):
    row = tl.program_id(0)
    found = unpacked(tl.load(source + row), slots, columns)
    tl.store(column + row, found[0])
    tl.store(least + row, found[1])
    tl.store(others + row, found[2])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 300_001])
@pytest.mark.parametrize("d", [9, 17, 64])
@pytest.mark.parametrize("k", [2, 64, 100, 200])
def test_the_kernel_for_hopper_says_what_the_other_does(n, d, k):
    if not has_gluon(torch.device("cuda", 0)):
        pytest.skip("needs a Hopper GPU")
    # Some rows are twice: then their two least scores may be hardly different.
    X = uniform(n, d)[torch.randint(0, n, (n,), device="cuda")]
    rows = place_rows(X, None, "cuda")
    C = torch.cat([X[:1], X[: min(n, k) // 2], uniform(k, d)])[:k].contiguous()
    rows.halve()
    scan = TensorScan(rows, k)
    run_state = torch.zeros(state.SIZE, dtype=torch.int32, device="cuda")
    scan.centers.pack(scan.fp16_rows, C, run_state)
    found = []
    for hopper in (True, False):
        if not hopper:
            scan.first = Kernels.RESIDENT
        scan.packed_scores.fill_(-7)
        scan.scoring(run_state)()
        # What is told of rows whose least are alike may have the names of either.
        column, least, others = (torch.empty(n, device="cuda") for _ in range(3))
        size = scan.centers.size
        tell[(n,)](scan.packed_scores, column, least, others, slots_of(size), size)
        found.append(torch.stack([column, least, others]))
    assert bool((found[0] == found[1]).all())
    assert int(found[0][0].min()) >= -1


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("n", [64, 65, 129, 300_001])
@pytest.mark.parametrize("k", [64, 256])
def test_the_kernel_for_hopper_tells_of_these_rows_only(n, k, stopped):
    if not has_gluon(torch.device("cuda", 0)):
        pytest.skip("needs a Hopper GPU")
    rows = place_rows(uniform(n, 20), None, "cuda")
    rows.halve()
    scan = TensorScan(rows, k)
    run_state = torch.zeros(state.SIZE, dtype=torch.int32, device="cuda")
    scan.centers.pack(scan.fp16_rows, uniform(k, 20), run_state)
    run_state[state.STOPPED.value] = int(stopped)
    # More than all programs have in a round.
    margin = 1 << 17
    found = torch.full((n + 2 * margin,), -7, dtype=torch.int64, device="cuda")
    inside = found[margin : margin + n]
    # Imported late: other versions of Triton may lack what it imports.
    from lloydia.backends.cuda.matmul.hopper_scan import hopper_scan

    hopper_scan(scan.fp16_rows, scan.centers, inside, run_state)
    assert bool((found[:margin] == -7).all())
    assert bool((found[margin + n :] == -7).all())
    assert bool((found[margin : margin + n] == -7).all()) == stopped
