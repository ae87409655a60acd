"""Centres in half precision: whenever rows are scanned, they are those that are current."""

from __future__ import annotations

from copy import copy
from functools import partial

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.device_functions.run_state import SIZE, STOPPED
from lloydia.backends.cuda.engine import CUDA
from lloydia.backends.cuda.matmul.fp16_centers import Fp16Centers
from lloydia.backends.cuda.matmul.packed_top_two import SMALLEST_SCORE
from lloydia.backends.cuda.matmul.scan import TensorScan
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.rows.fp16_frame import MAX_RADIUS, RADIUS
from lloydia.backends.cuda.rows.fp16_rows import UNIT, Fp16Rows
from lloydia.backends.cuda.rows.packing import FAR, in_fixed_point, typical_of
from lloydia.backends.cuda.runtime.launching import place
from lloydia.backends.cuda.runtime.relocation import replay
from lloydia.backends.reference import Reference
from lloydia.data.arrays import on_host
from lloydia.loop.run import run_iterations
from lloydia.stopping import Shift
from nasty import FLAVOURS, rows_of

N, D, K = 30, 12, 4
PACKED = (
    "high", "half_norm", "half_norm_f32", "square", "norm", "residual", "score_bias",
    "bound_coefficients", "typical",
)  # fmt: skip


@pytest.fixture
def scans(monkeypatch):
    """See that scans find packed what they should; return which of them found it there before."""
    if torch.cuda.is_available():
        pytest.skip("scans are seen in the interpreter only")
    found, packings, stages, pack = [], [], TensorScan.stages, Fp16Centers.pack

    def packed(self, *args):
        packings.append(self)
        pack(self, *args)

    def compare(self, centers, run_state):
        was = self.centers
        if run_state[STOPPED.value] == 0:
            now = copy(was)
            for name in (*PACKED, "columns", "partial"):
                setattr(now, name, getattr(was, name).clone())
            pack(now, self.fp16_rows, centers, torch.zeros_like(run_state))
            for name in PACKED:
                assert torch.equal(getattr(was, name), getattr(now, name)), name
            assert torch.equal(was.columns[:, :, : was.k], now.columns[:, :, : was.k])
            found.append(was not in packings)
            packings.clear()

    def compared(self, centers, changes):
        return [partial(compare, self, centers, changes.run_state), *stages(self, centers, changes)]

    monkeypatch.setattr(TensorScan, "stages", compared)
    monkeypatch.setattr(Fp16Centers, "pack", packed)
    return found


@pytest.mark.parametrize("case", ["all", "rule", "empty"])
def test_scans_find_the_current_centres_packed(case, scans):
    X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
    options = {"empty": "relocate", "rule": Shift(1.0 if case == "rule" else 0.0), "max_iter": 5}
    start = X[:K].copy()
    if case == "empty":
        start[2] = 1e3
    engine = CUDA(torch.from_numpy(X), None, "cuda")
    engine.magnitudes()
    scans.clear()
    found, expected = (
        run_iterations(one, start, algorithm="lloyd", **options)
        for one in (engine, Reference(X, None))
    )
    assert np.array_equal(on_host(found.labels), on_host(expected.labels))
    assert np.array_equal(on_host(found.centers), on_host(expected.centers))
    # Centres are packed for the first one, and after each return to an iteration before.
    assert not scans[0]
    assert any(scans)
    assert all(scans[1:]) == (case == "all")


@triton.jit
def mean_kernel(bound, count, out):
    x = tl.load(bound)
    many = tl.load(count)
    tl.store(out, typical_of(in_fixed_point(x) * many, many))


def test_sums_of_bounds_do_not_overflow():
    device = place("cuda")
    # Of more centres than there is time for.
    most = torch.tensor([1.001 * FAR.value * MAX_RADIUS.value], device=device)
    count = torch.tensor([2**28], device=device)
    out = torch.zeros(1, device=device)
    mean_kernel[(1,)](most, count, out)
    assert float(out) == pytest.approx(float(most), rel=2.0**-20)


def unfavourable():
    """Return rows, and centres among them, whose rounding to float16 leaves out the most."""
    one = np.random.default_rng(2).choice([-1.0, 1.0], size=(32, 64))
    one *= 1 + 2.0**-11 * (1 - 2.0**-10)
    one[-3:] *= 2
    X = np.stack([one, one, -one, -one], axis=1).reshape(-1, 64)
    return X, np.vstack([np.zeros((57, 64)), one[-3:]])


@pytest.mark.parametrize("kind", ["unfavourable", *FLAVOURS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_are_in_the_range_that_names_need(kind, dtype):
    """Of rows within R, to centres among them and just near enough, with unusual bounds."""
    rng, d = np.random.default_rng(5), 20
    X, chosen = unfavourable() if kind == "unfavourable" else (None, None)
    X = rows_of(kind, 150, d, dtype, seed=4) if X is None else X.astype(dtype)
    with np.errstate(all="ignore"):
        rows = place_rows(X, None, "cuda")
        fp16_rows = Fp16Rows(rows)
        replay(*fp16_rows.storing)
        numbers, origin = fp16_rows.numbers.cpu().numpy()[0], fp16_rows.origin.cpu().numpy()[0]
        if chosen is None:
            toward = rng.normal(size=(10, d))
            toward *= np.linspace(0.5, 2.99, 10)[:, None] / np.linalg.norm(toward, axis=1)[:, None]
            edge = origin + toward * numbers[RADIUS.value] / numbers[0]
            chosen = np.vstack([X[rng.integers(len(X), size=30)], edge])
        starts = chosen.astype(X.dtype)
        centers = Fp16Centers(fp16_rows, len(starts), 64)
        run_state = torch.zeros(SIZE, dtype=torch.int32, device=rows.device)
        centers.pack(fp16_rows, torch.from_numpy(starts).to(rows.device), run_state)
    y, b = (x.high.cpu().numpy().astype(np.float64) for x in (fp16_rows, centers))
    half_norm = centers.half_norm.cpu().numpy().astype(np.float64).sum(axis=1) * numbers[UNIT.value]
    scores, radius = half_norm + y @ b.T, numbers[RADIUS.value]
    within = scores[(fp16_rows.norm + fp16_rows.residual).cpu().numpy() <= radius]
    assert len(within) > 0
    assert (centers.square[: len(starts)] >= 0).sum() > 0
    assert within.min() >= 4.0 > SMALLEST_SCORE
    assert within.max() <= 8.1 * radius**2 + 4.0 < 2.0**33
