"""How many of Lloydia's frames lie between ``KMeans.fit`` and the launch of a kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton")

import lloydia
from lloydia import KMeans
from lloydia.backends.cuda.runtime.launching import INTERPRETED
from lloydia.estimators import kmeans
from lloydia.loop import run

if not INTERPRETED:
    pytest.skip("kernels are launched by another class on a GPU", allow_module_level=True)

from triton.runtime import interpreter

HERE = str(Path(lloydia.__file__).parent)
# Above the engine: KMeans.fit, and of the loop run_iterations and the run, a generator.
UPPER = 3
# In all, to the function that calls the kernel: the rest are those of the GPU engine.  More where
# the mean variance of the rows is computed.
MOST, MOST_OF_VARIANCE = 9, 11


def launches(monkeypatch, d):
    """Return the kernel of each launch of a fit, and Lloydia's frames, from the outermost."""
    found, call = [], interpreter.GridExecutor.__call__

    def launch(self, *args, **options):
        frame, frames = sys._getframe(1), []
        while frame is not None:
            if frame.f_code.co_filename.startswith(HERE):
                frames.append((frame.f_code.co_filename, frame.f_code.co_name))
            frame = frame.f_back
        found.append((self.fn.__name__, frames[::-1]))
        return call(self, *args, **options)

    monkeypatch.setattr(interpreter.GridExecutor, "__call__", launch)
    X = np.random.default_rng(0).normal(size=(200, d)).astype(np.float32)
    KMeans(4, init="first", device="cuda").fit(X)
    return found


@pytest.mark.parametrize("d", [2, 64])
def test_frames_between_fit_and_a_launch(monkeypatch, d):
    found = launches(monkeypatch, d)
    runs = [one for one in found if any(file == run.__file__ for file, _ in one[1])]
    assert len(runs) > 5
    for kernel, frames in runs:
        assert frames[0] == (kmeans.__file__, "fit")
        engine = next(i for i, (file, _) in enumerate(frames) if "backends" in file)
        # The end of a run is a part of the generator, one frame more.
        assert engine <= UPPER + (frames[engine - 1][1] == "_ended")
        variance = any(name == "queue_variance" for _, name in frames)
        assert len(frames) <= (MOST_OF_VARIANCE if variance else MOST), (kernel, frames)
