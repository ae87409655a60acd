"""Kernels read no memory that they gave back, nor what nobody has written."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

CODE = """
import numpy as np
from lloydia import KMeans

rng = np.random.default_rng(0)
for d, k in ((8, 40), (40, 60)):
    X = 3 * rng.normal(size=(k, d))[rng.integers(k, size=3000)] + rng.normal(size=(3000, d))
    of = {"n_clusters": k, "init": X[:k], "n_init": 1, "max_iter": 20, "tol": 0.0}
    right = KMeans(**of, algorithm="lloyd", device="reference").fit(X)
    for algorithm in ("lloyd", "elkan", "hamerly", "exponion", "yinyang", "filtering"):
        if algorithm == "filtering" and d > 8:
            continue
        for n_threads in (1, 2):
            found = KMeans(**of, algorithm=algorithm, n_threads=n_threads).fit(X)
            assert (found.labels_ == right.labels_).all(), algorithm
            assert (found.cluster_centers_ == right.cluster_centers_).all(), algorithm
            assert found.inertia_ == right.inertia_, algorithm
print("the same")
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc overwrites what is given back")
def test_the_answer_is_the_same_where_it_is_overwritten():
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", CODE],
        env=os.environ | {"MALLOC_PERTURB_": "90"},  # and memory that is handed out has 165
        capture_output=True,
        text=True,
    )
    assert ran.stdout == "the same\n", ran.stderr
