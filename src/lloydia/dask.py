"""KMeans on the workers of a Dask cluster.

The estimator is :class:`lloydia.KMeans`, which takes Dask arrays and data frames itself where a
client is current; the one here can be given its client, and takes nothing else.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from copy import copy
from typing import Any

from lloydia.data.collections import is_collection
from lloydia.imports import load
from lloydia.kmeans import KMeans as Local

__all__ = ["KMeans"]


class KMeans(Local):
    """k-means clustering on a Dask cluster, with the bits of one machine.

    Rows stay on the workers that hold them, labels too; centres, seeds and sums of integers travel.
    The result does not depend on the partitions, on the number of workers, or on whether one of
    them dies and Dask makes its rows again elsewhere.

    Parameters
    ----------
    n_clusters, init, n_init, max_iter, tol, verbose, random_state, copy_x, algorithm, stop, empty
        As in :class:`lloydia.KMeans`.  A callable `init` gets the Dask collection.  Where k is
        large, ``init="k-means||"`` asks the workers some 20 times, ``"k-means++"`` five times for
        each centre.
    device : {"auto", "cpu", "cuda"}, default="auto"
        What the workers compute on: ``"auto"`` is where blocks live, ``"cuda"`` is for workers that
        see one GPU each.
    n_threads : int or None, default=None
        Of each worker.  None: as many as Dask gives it.
    client : distributed.Client or None, default=None
        None: the current client.

    Attributes
    ----------
    labels_ : Dask array of shape (n_samples,), int32
        In the partitions of X, on the workers.  Copies and pickles of the estimator go without it:
        ``predict(X)`` gives the same labels.
    cluster_centers_, inertia_, n_iter_, ...
        As in :class:`lloydia.KMeans`: here, not on the workers.

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
            Computed and held by the workers, unless they hold it already.  Chunks across columns
            are merged; partitions may be empty.
        y : Ignored
        sample_weight : Dask array or series, or array-like, of shape (n_samples,), default=None

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is no Dask collection.
        ValueError
            As :meth:`lloydia.KMeans.fit`; what is wrong with the rows names the partition.
        RuntimeError
            If there is no client, or no worker, or one with another version of Lloydia.
        """
        self._refuse_local(X)
        with self._client():
            return super().fit(X, sample_weight=sample_weight)

    def score(self, X, y=None, sample_weight=None):
        """Return minus the inertia of X with the fitted centres: a float.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
        y : Ignored
        sample_weight : as in :meth:`fit`
        """
        self._refuse_local(X)
        with self._client():
            return super().score(X, sample_weight=sample_weight)

    def __getstate__(self):
        """Return what is pickled; a connection is not."""
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self):
        """Return an unfitted estimator with the same parameters, and on the same client."""
        cloned = super(KMeans, copy(self)).__sklearn_clone__()
        return cloned.set_params(client=self.client)

    def _client(self) -> AbstractContextManager:
        """Return the context in which this estimator's client is the current one."""
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
                "There is no Dask client: make one, as dask.distributed.Client() does for this "
                "machine, or give one with client=."
            ) from None

    def _refuse_local(self, X: Any) -> None:
        if not is_collection(X):
            raise TypeError(
                f"X is a {type(X).__module__}.{type(X).__qualname__} and lloydia.dask takes Dask "
                "arrays and data frames: use lloydia.KMeans, or dask.array.from_array(X)."
            )
