"""KMeans on the workers of a Dask cluster.

:class:`lloydia.KMeans` accepts Dask arrays and data frames as well, if there is a current client.
The class in this module has a parameter `client`, and accepts only Dask collections.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from copy import copy
from typing import Any

from lloydia.data.collections import is_collection
from lloydia.estimators.kmeans import KMeans as Local
from lloydia.imports import load

__all__ = ["KMeans"]


class KMeans(Local):
    """k-means clustering on a Dask cluster, with the same result as on one machine.

    Rows and labels stay on the workers that hold them; only centres, seeds and sums of integers are
    transferred.  The result does not depend on the partitions or on the number of workers.  It is
    the same if a worker dies and Dask recomputes its rows on another worker.

    Parameters
    ----------
    n_clusters, init, n_init, max_iter, tol, verbose, random_state, copy_x, algorithm, stop, empty
        As in :class:`lloydia.KMeans`.  A callable `init` receives the Dask collection.  For a large
        `n_clusters`, prefer ``init="k-means||"``: it needs about 20 requests to the workers in all,
        while ``"k-means++"`` needs five for each centre.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the workers compute.  ``"auto"``: on the device that holds each block.  ``"cuda"``: on
        the GPU of each worker; each worker must see exactly one.
    n_threads : int or None, default=None
        Number of CPU threads of each worker.  None: the number that Dask assigns to the worker.
    client : distributed.Client or None, default=None
        The Dask client.  None: the current client.

    Attributes
    ----------
    labels_ : Dask array of shape (n_samples,), int32
        Labels in the partitions of X, on the workers.  Copies and pickles of the estimator do not
        include it; ``predict(X)`` gives the same labels.
    cluster_centers_, inertia_, n_iter_, ...
        As in :class:`lloydia.KMeans`, in this process and not on the workers.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from lloydia.dask import KMeans
    >>> client = Client(n_workers=2)  # doctest: +SKIP
    >>> X = da.random.random((100_000, 8), chunks=(10_000, 8))
    >>> kmeans = KMeans(n_clusters=5, init="k-means||", random_state=0).fit(X)  # doctest: +SKIP
    >>> kmeans.labels_  # doctest: +SKIP
    dask.array<labels, shape=(100000,), dtype=int32, chunksize=(10000,), ...>
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        verbose=0,
        random_state=None,
        copy_x=True,
        algorithm="auto",
        device="auto",
        n_threads=None,
        stop=None,
        empty="relocate",
        client=None,
    ):
        super().__init__(
            n_clusters,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            verbose=verbose,
            random_state=random_state,
            copy_x=copy_x,
            algorithm=algorithm,
            device=device,
            n_threads=n_threads,
            stop=stop,
            empty=empty,
        )
        self.client = client

    def fit(self, X, y=None, sample_weight=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            The workers compute it and keep it in memory during the fit, unless they hold it
            already.  Chunks across columns are merged; partitions may be empty.
        y : Ignored
        sample_weight : Dask array or series, or array-like, of shape (n_samples,), default=None
            Finite weights >= 0; None gives every row the weight 1.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is not a Dask collection.
        ValueError
            As :meth:`lloydia.KMeans.fit`; errors about rows name the partition.
        ImportError
            If Dask is not installed.
        RuntimeError
            If there is no client or no worker, or a worker has another version of Lloydia.
        """
        self._refuse_local(X)
        with self._client():
            return super().fit(X, sample_weight=sample_weight)

    def score(self, X, y=None, sample_weight=None):
        """Return the negative inertia of X for the fitted centres.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Rows with the features of the fit.
        y : Ignored
        sample_weight : Dask array or series, or array-like, of shape (n_samples,), default=None
            Finite weights >= 0; None gives every row the weight 1.

        Returns
        -------
        score : float
            Minus the sum over the rows of weight times squared distance to the nearest centre.

        Raises
        ------
        TypeError, ValueError, ImportError, RuntimeError
            As :meth:`fit`.
        """
        self._refuse_local(X)
        with self._client():
            return super().score(X, sample_weight=sample_weight)

    def __getstate__(self):
        """Return the state to pickle, without the client."""
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self):
        """Return an unfitted estimator with the same parameters and the same client."""
        cloned = super(KMeans, copy(self)).__sklearn_clone__()
        return cloned.set_params(client=self.client)

    def _client(self) -> AbstractContextManager:
        """Return a context manager that makes this estimator's client the current one."""
        try:
            Client = load("distributed").Client
        except ModuleNotFoundError as error:
            if error.name not in ("distributed", "dask"):
                raise
            raise ImportError(
                "lloydia.dask needs Dask: pip install 'dask[array,dataframe]' distributed."
            ) from None
        try:
            return (self.client or Client.current()).as_current()
        except ValueError:
            raise RuntimeError(
                "There is no Dask client: create one, for instance by dask.distributed.Client(), "
                "which starts workers on this machine, or pass an existing one as client=."
            ) from None

    def _refuse_local(self, X: Any) -> None:
        if not is_collection(X):
            raise TypeError(
                f"X is a {type(X).__module__}.{type(X).__qualname__}, and lloydia.dask.KMeans "
                "takes only Dask arrays and data frames: use lloydia.KMeans, or convert X by "
                "dask.array.from_array(X)."
            )
