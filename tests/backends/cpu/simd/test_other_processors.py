"""The kernels as other processors would get them, from the vector units that LLVM is told of.

Each processor has a process of its own, since the blocks of registers are chosen when a kernel's
file is read.  Those for x86 run here, whatever is there; for NEON the same code is compiled for a
processor with 64-bit Arm, which shows that it can be, and with vectors.
"""

import os
import re
import subprocess
import sys

import pytest

PROGRAM = """
import re
import sys

import llvmlite.binding as llvm

units = sys.argv[1].split()
llvm.get_host_cpu_features = lambda: {unit: True for unit in units}

import numpy as np
from numba.core.codegen import CPUCodeLibrary

# Before code is made of them.
texts = []
optimize = CPUCodeLibrary._optimize_final_module


def noting(library):
    optimize(library)
    texts.append(str(library._final_module))


CPUCodeLibrary._optimize_final_module = noting

import lloydia
from lloydia.algorithms import ALGORITHMS

rng = np.random.default_rng(0)
CASES = [(1_000, 2, 7, "f4"), (1_000, 2, 7, "f8"), (500, 20, 30, "f4"), (500, 20, 18, "f8")]
for n, d, k, dtype in CASES:
    X = (rng.normal(size=(n, d)) + rng.integers(0, 3, (n, 1))).round(1).astype(dtype)
    right = lloydia.KMeans(k, random_state=0, n_init=1, device="reference").fit(X)
    for name in ALGORITHMS:
        found = lloydia.KMeans(k, random_state=0, n_init=1, algorithm=name).fit(X)
        assert found.n_iter_ == right.n_iter_, (name, n, d, k, dtype)
        assert np.array_equal(found.labels_, right.labels_), (name, n, d, k, dtype)
        assert np.array_equal(found.cluster_centers_, right.cluster_centers_)
        assert found.inertia_ == right.inertia_

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
arm = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine("generic", opt=2)
fused = 0
for text in texts:
    # Numba's counting of references has been made for this processor: not ours.
    text = text.replace("llvm.x86.atomic", "x86.atomic")
    text = re.sub(r'target triple = ".*"', f'target triple = "{arm.triple}"', text)
    text = re.sub(r'target datalayout = ".*"', f'target datalayout = "{arm.target_data}"', text)
    fused += bool(re.search(r"fmla\\tv\\d+[.]4s", arm.emit_assembly(llvm.parse_assembly(text))))
print(len(texts), "kernels for Arm,", fused, "with products of four lanes")
"""


def begun(units, cache):
    """Return the process of one, which has begun."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, units],
        env={
            **os.environ,
            "NUMBA_CPU_NAME": "generic",
            "NUMBA_CPU_FEATURES": ",".join(f"+{unit}" for unit in units.split() if unit != "neon"),
            "NUMBA_CACHE_DIR": str(cache),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_answers_are_the_same_and_kernels_compile_for_arm(tmp_path):
    # Side by side: each takes most of a minute.
    runs = [begun(units, tmp_path / units[:3]) for units in ("avx avx2 fma", "neon")]
    for run in runs:
        told, errors = run.communicate()
        assert run.returncode == 0, errors
        compiled, fused = map(int, re.findall(r"\d+", told))
        assert compiled > 10
        assert fused >= 4
