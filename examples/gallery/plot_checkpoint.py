"""
Checkpoints: a fit that is interrupted
======================================

A ``Checkpoint`` writes the state of a fit to a file. If the fit is killed, another process
continues from the file, and gives exactly the result of a fit that was never interrupted. (This
needs scikit-learn 1.9, which has callbacks.)
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lloydia import KMeans
from lloydia.callbacks import Checkpoint

X = np.random.default_rng(0).random((20_000, 2)).astype(np.float32)
path = Path(tempfile.mkdtemp()) / "fit.npz"

# %%
# This callback simulates a power failure: it raises an error in the 25th iteration.


class PowerCut:
    """Raise an error when an iteration ends."""

    def __init__(self, iteration):
        self.iteration, self.seen = iteration, 0

    def setup(self, estimator, context):
        """Do nothing."""

    def on_fit_task_begin(self, estimator, context):
        """Do nothing."""

    def on_fit_task_end(self, estimator, context):
        """Count, and raise."""
        self.seen += 1
        if self.seen == self.iteration:
            raise RuntimeError("power cut")

    def teardown(self, estimator, context):
        """Do nothing."""


model = KMeans(50, random_state=0, tol=0, max_iter=1000)
model.set_callbacks(Checkpoint(path, every=10), PowerCut(25))
try:
    model.fit(X)
except RuntimeError as error:
    print(f"{error}; the checkpoint has {path.stat().st_size:,} bytes")

# %%
# ``KMeans.resume`` returns an estimator whose ``fit`` continues from the file. The file holds
# centres and no data, so ``fit`` needs the same rows again.

resumed = KMeans.resume(path).fit(X)
unbroken = KMeans(50, random_state=0, tol=0, max_iter=1000).fit(X)

assert np.array_equal(resumed.labels_, unbroken.labels_)
assert np.array_equal(resumed.cluster_centers_, unbroken.cluster_centers_)
assert (resumed.inertia_, resumed.n_iter_) == (unbroken.inertia_, unbroken.n_iter_)
print(f"{resumed.n_iter_} iterations, inertia {resumed.inertia_:.6f}: the same result")

# %%
# The centres of both results coincide.

figure, ax = plt.subplots(figsize=(6, 5.4), layout="constrained")
ax.scatter(*X[::4].T, s=2, c=resumed.labels_[::4], cmap="tab20")
ax.scatter(
    *unbroken.cluster_centers_.T, s=90, facecolor="none", edgecolor="black", label="unbroken"
)
ax.scatter(*resumed.cluster_centers_.T, s=20, marker="x", color="black", label="resumed")
ax.legend(loc="upper right")
ax.set_axis_off()
