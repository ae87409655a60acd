"""The verdict in float32 never says more than the one in float64."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from lloydia.backends.cuda.certain import certain
from lloydia.backends.cuda.launching import place
from lloydia.exact.half_certificate import LAST_STEP, canonical_error, certified, summation

TERMS = {
    "shift": 40.0, "radius": 8.0, "largest": 6.0, "residual": 2.0**-9, "start": 60.0,
    "summed": summation(64, 64), "added": LAST_STEP, "canonical": canonical_error(64),
}  # fmt: skip


@triton.jit
def kernel(
    least, second, norm, rest, sure, shift, radius, largest, residual, start,
    summed, added, canonical, N: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, N)
    verdict = certain(
        tl.load(least + i), tl.load(second + i), tl.load(norm + i), tl.load(rest + i),
        shift, radius, largest, residual, start, summed, added, canonical, 0.0,
    )  # fmt: skip
    tl.store(sure + i, verdict.to(tl.int32))


def test_float32_is_the_stricter_but_hardly():
    rng = np.random.default_rng(0)
    n = 1 << 14
    norm = rng.uniform(0, 9, n)
    least = rng.uniform(-1, 120, n)
    rest = 2.0 ** rng.uniform(-14, 1, n)
    second = least + rng.uniform(0, 1, n) * 10.0 ** rng.uniform(-3, 2, n)
    values = [v.astype(np.float32) for v in (least, second, norm, rest)]
    values[3][:5] = np.inf
    values[1][5:9] = np.nan
    device = place("cuda")
    sure = torch.zeros(n, dtype=torch.int32, device=device)
    kernel[(1,)](*(torch.as_tensor(v).to(device) for v in values), sure, *TERMS.values(), N=n)
    sure = sure.cpu().numpy().astype(bool)
    with np.errstate(all="ignore"):
        expected = certified(*(v.astype(np.float64) for v in values), **TERMS)
    assert not (sure & ~expected).any()
    assert 0 < (expected & ~sure).sum() < 0.01 * expected.sum() or (expected == sure).all()
    assert expected.mean() > 0.1
