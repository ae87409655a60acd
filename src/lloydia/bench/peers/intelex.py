"""Intel's extension for scikit-learn, by its own class: nothing of scikit-learn is patched."""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.bench.peers import Fitted, Peer, Task


class Intelex(Peer):
    """oneDAL's lloyd, by ``sklearnex.cluster.KMeans``."""

    name = "scikit-learn-intelex"
    package = "scikit-learn-intelex"
    takes_defaults = True
    stops = True

    def fit(self, X: NDArray, task: Task) -> Fitted:
        """Fit, on as many threads as oneDAL is told to use."""
        import daal4py
        from sklearnex.cluster import KMeans

        daal4py.daalinit(task.threads)
        fitted = KMeans(
            task.k,
            init="k-means++" if task.start is None else task.start,
            n_init=1,
            max_iter=task.iterations,
            tol=task.tol,
            random_state=0,
            algorithm="lloyd",
        ).fit(X)
        if not hasattr(fitted, "_onedal_estimator"):
            raise RuntimeError("it fell back to scikit-learn")
        return Fitted(fitted.cluster_centers_, fitted.n_iter_)


PEERS = (Intelex(),)
