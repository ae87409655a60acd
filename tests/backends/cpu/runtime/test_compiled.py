"""Kernels on disk are read without what only a compiler needs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from lloydia.backends.cpu.runtime.compiled import kernel, sources

PROGRAM = """
import sys
import numpy as np
from lloydia.backends.cpu.update.means import summarise
print(summarise(np.zeros(3, dtype=bool), np.ones(3), np.ones(3)), "numba.np.linalg" in sys.modules)
"""


@pytest.mark.slow
def test_a_kernel_on_disk_needs_no_declarations(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert told == ["(0, 3.0, 1.0) True", "(0, 3.0, 1.0) False"]


FIT = """
import sys
import numpy as np
from numba.core.runtime import rtsys
from lloydia import KMeans
rng = np.random.default_rng(0)
for n, d, dtype, k in ((150, 4, "f8", 3), (2_000, 16, "f4", 32)):
    KMeans(k, random_state=0).fit(rng.normal(size=(n, d)).astype(dtype))
print("numba.np.arrayobj" in sys.modules, rtsys._init)
"""


@pytest.mark.slow
def test_a_fit_with_its_kernels_on_disk_needs_nothing_of_numba_that_makes_arrays(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run(
            [sys.executable, "-c", FIT],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert told == ["True True", "False False"]


def test_kernels_on_disk_depend_on_the_source_of_all_that_they_call():
    names = {"/".join(path.parts[-3:]) for path in sources()}
    assert {
        "cpu/simd/limbs.py", "cpu/scan/bounds.py", "cpu/runtime/compiled.py",
        "lloydia/exact/certificate.py", "lloydia/algorithms/filtering.py",
        "lloydia/metrics/dense_kernel.py",
    } <= names  # fmt: skip

    @kernel
    def one():
        return 1

    empty = hashlib.sha256(b"").hexdigest()[:12]
    assert empty not in one.py_func.__qualname__
