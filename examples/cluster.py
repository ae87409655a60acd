"""A Dask cluster of two processes, one of which is killed in the middle of a fit: the same bits.

Run it with ``python examples/cluster.py`` (it needs the extra ``dask``); the exit
status is 1 if a single bit differs.
"""

from __future__ import annotations

import os
import signal
import sys

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

import lloydia
from lloydia.backends.reports import Report
from lloydia.dask import KMeans
from lloydia.progress.iterations import watch


def main() -> int:
    """Fit on one machine and on the cluster; return the exit status."""
    # Made on the workers, block by block, and the same every time.
    X = da.random.default_rng(0).normal(size=(200_000, 8), chunks=(25_000, 8)).astype(np.float32)
    options = {"n_clusters": 20, "init": "k-means||", "random_state": 0, "max_iter": 30}
    here = lloydia.KMeans(**options).fit(X.compute(scheduler="synchronous"))

    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:

        def kill(report: Report) -> None:
            if report.iteration == 5:
                victim = next(iter(client.run(os.getpid).values()))
                os.kill(victim, signal.SIGKILL)
                print(f"iteration 5: killed the worker of process {victim}")

        with watch(kill):
            there = KMeans(**options).fit(X)
        print(there.labels_)
        same = (
            np.array_equal(there.labels_.compute(), here.labels_)
            and there.cluster_centers_.tobytes() == here.cluster_centers_.tobytes()
            and (there.inertia_, there.n_iter_) == (here.inertia_, here.n_iter_)
        )
    print(f"{there.n_iter_} iterations, inertia {there.inertia_}: {'the same' if same else 'NOT'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
