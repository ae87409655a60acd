"""Kernels on disk are read without what only a compiler needs."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
from lloydia.backends.cpu.means import summarise
print(summarise(np.zeros(3, dtype=bool), np.ones(3), np.ones(3)), "numba.np.linalg" in sys.modules)
"""


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
