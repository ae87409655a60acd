"""Real processes, killed at random moments, and resumed."""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import time

import pytest

from table import answer

pytest.importorskip("sklearn.callback")
pytestmark = [pytest.mark.kill, pytest.mark.slow]
if not hasattr(os, "fork"):
    pytest.skip("processes are forked here", allow_module_level=True)

# It fits once, so that all is compiled; then it forks processes that begin the fit or resume it.
# A process takes two lines: at the first it prints its number, at the second how it ended.
PARENT = """
import os, pickle, sys, traceback
import numpy as np
from lloydia import KMeans, stopping
from lloydia.callbacks import Checkpoint

X = np.random.default_rng(0).random((4000, 2)).astype(np.float32)
model = KMeans(60, random_state=1, n_init=3, init="random", tol=0, n_threads=2,
               stop=stopping.Inertia(0.0) | stopping.Labels())

def answer():
    if os.path.exists("fit.npz"):
        resumed = KMeans.resume("fit.npz")
    else:
        resumed = model
    return resumed.set_callbacks(Checkpoint("fit.npz", every=1)).fit(X)

def save(fitted, name):
    with open(name + ".part", "wb") as file:
        pickle.dump(fitted, file)
    os.replace(name + ".part", name)

save(model.fit(X), "expected")
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            save(answer(), "found")
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture
def parent(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=tmp_path, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        yield process
        # It waits for a line, however the test ended.
        process.kill()


def one_life(parent, seconds=None):
    """Let a process live for so long at most; return whether it came to its end."""
    parent.stdin.write("go\n")
    parent.stdin.flush()
    child = int(parent.stdout.readline())
    if seconds is not None:
        time.sleep(seconds)
        # The parent waits for it only after this, so the number is that of no other process.
        os.kill(child, signal.SIGKILL)
    parent.stdin.write("wait\n")
    parent.stdin.flush()
    status = int(parent.stdout.readline())
    assert status in (0, signal.SIGKILL)
    return status == 0


def test_a_fit_that_is_killed_fifty_times_has_the_bits_of_one_that_is_not(parent, tmp_path):
    def check():
        found = pickle.loads((tmp_path / "found").read_bytes())
        assert answer(found) == answer(expected)
        assert found.inertia_history_ == expected.inertia_history_
        (tmp_path / "found").unlink()
        (tmp_path / "fit.npz").unlink()

    expected = pickle.loads((tmp_path / "expected").read_bytes())
    began = time.monotonic()
    assert one_life(parent)
    whole = time.monotonic() - began
    check()
    moments, kills = random.Random(0), 0
    while kills < 50:
        if one_life(parent, moments.uniform(0.0, whole)):
            check()
        else:
            kills += 1
    assert one_life(parent)
    check()
