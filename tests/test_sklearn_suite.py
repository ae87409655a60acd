from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SUITE = Path(__file__).with_name("sklearn_suite.py")
BROKEN = """
import lloydia
from lloydia import MiniBatchKMeans, k_means, kmeans_plusplus

class KMeans(lloydia.KMeans):
    def fit(self, X, y=None, sample_weight=None):
        super().fit(X, sample_weight=sample_weight)
        self.n_iter_ += 1
        return self
"""


def run(*arguments, folder=None):
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if folder is not None:
        environment["PYTHONPATH"] = str(folder)
    done = subprocess.run(
        [sys.executable, str(SUITE), *arguments], env=environment, capture_output=True, text=True
    )
    return done, json.loads(done.stdout.splitlines()[-1])


def test_scikit_learns_own_tests_pass():
    done, counts = run()
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert counts.get("failed", 0) == 0
    assert counts["passed"] >= 455  # of 468, with scikit-learn 1.9


def test_a_wrong_estimator_fails(tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    # The first two ask for the number of iterations, the third does not.
    some = "kmeans_results or iter_attribute or transform"
    done, counts = run("broken", "--dtypes", "float64", "-k", some, folder=tmp_path)
    assert done.returncode == 1
    assert counts["failed"] >= 6
    assert counts["passed"] >= 4
