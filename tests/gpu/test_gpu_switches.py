"""Every switch of the GPU engine gives the bits of the CPU, where what it turns off is used."""

from __future__ import annotations

import pytest

from lloydia import KMeans
from table import answer, blobs

torch = pytest.importorskip("torch")
options = pytest.importorskip("lloydia.backends.cuda.options")

# Few features, with a table of sums; the kernel in Gluon; recheck by candidates; and so many rows
# and centres that bounds are kept late in the run.
SHAPES = ((50_003, 3, 16), (50_003, 64, 256), (20_011, 33, 1000), (300_007, 128, 1024))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_switch_gives_the_bits_of_the_cpu(shape):
    n, d, k = shape
    X = blobs(n, d, "float32")
    fit = {"init": X[:k].copy(), "n_init": 1, "tol": 0.0, "max_iter": 40}
    expected = answer(KMeans(k, **fit).fit(X))
    rows = torch.as_tensor(X).cuda()
    for name in options.SWITCHES:
        with options.without(name):
            # Twice: what is recorded by the first one is there for the second.
            for _ in range(2):
                assert answer(KMeans(k, **fit).fit(rows)) == expected, name
    with options.without(*options.SWITCHES):
        assert answer(KMeans(k, **fit).fit(rows)) == expected
