"""One answer: any number of threads, any algorithm, the same SHA-256 of all that a fit returns.

Run it with ``python examples/same_bits.py``; the exit status is 1 if a single bit differs.
"""

from __future__ import annotations

import hashlib
import sys

import numpy as np
from sklearn.datasets import make_blobs

from lloydia import KMeans


def digest(model: KMeans) -> str:
    """Return the SHA-256 of a fit's labels, centres, inertia and number of iterations."""
    sha = hashlib.sha256()
    sha.update(model.labels_.astype("<i4").tobytes())
    sha.update(model.cluster_centers_.astype("<f4").tobytes())
    sha.update(np.array([model.inertia_, model.n_iter_], "<f8").tobytes())
    return sha.hexdigest()


X, _ = make_blobs(50_000, 8, centers=20, cluster_std=4.0, random_state=0)
X = X.astype(np.float32)

seen = set()
for algorithm in ("lloyd", "elkan", "hamerly"):
    for n_threads in (1, 2, 7):
        model = KMeans(20, random_state=0, algorithm=algorithm, n_threads=n_threads).fit(X)
        seen.add(digest(model))
        print(
            f"{algorithm:8} {n_threads} threads  {model.n_iter_} iterations  "
            f"{model.n_distances_:>11,} distances  {digest(model)[:32]}"
        )
print("all the same" if len(seen) == 1 else f"{len(seen)} different answers")
sys.exit(len(seen) > 1)
