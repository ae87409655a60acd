"""KMeans, the scikit-learn estimator."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from numpy.typing import NDArray

from lloydia.backends import choose, one_gpu, telling
from lloydia.backends.engine import Engine, Report
from lloydia.backends.weighted import WeightedRows
from lloydia.callbacks import CallbackSupportMixin, Tasks, with_callbacks
from lloydia.data.arrays import home_of
from lloydia.data.chunks.source import Chunks
from lloydia.data.columns import DataError
from lloydia.data.device_arrays import n_distinct
from lloydia.estimator import BaseKMeans, warn_of_fewer
from lloydia.imports import load
from lloydia.loop.resuming import Progress, Snapshot, estimator_parameters
from lloydia.loop.run import CALLBACK, Result, minimise
from lloydia.parameters import check_parameters, check_range
from lloydia.progress.stages import steps
from lloydia.spelling import option
from lloydia.stopping import Rule, Shift, Tolerance

__all__ = ["KMeans"]


class KMeans(CallbackSupportMixin, BaseKMeans):
    """k-means clustering that gives the same bits on any number of threads, and on a GPU.

    A drop-in for :class:`sklearn.cluster.KMeans`: the same parameters, attributes and methods, and
    four parameters more (`device`, `n_threads`, `stop`, `empty`).  The result is defined to the
    last bit (see ``docs/contract.md``); `algorithm`, `device` and `n_threads` change the time it
    takes and nothing else.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k.
    init : str, array or callable, default="k-means++"
        Where the centres start:

        - ``"k-means++"``: drawn with probability proportional to the squared distance to the
          nearest centre so far, the best of ``2 + log(k)`` draws each (Arthur and Vassilvitskii
          2007);
        - ``"random"``: distinct rows, drawn by weight (Forgy 1965);
        - ``"first"``: the first k rows (MacQueen 1967);
        - ``"farthest"``: a random row, then always the farthest one (Gonzalez 1985);
        - ``"k-means||"``: five rounds that choose about 2 k candidates each, then k of them by
          ``"k-means++"`` (Bahmani et al. 2012);
        - an array of shape (k, d), or a callable that gets X, k and `random_state` and returns one.
          The columns of a data frame are matched to those of X by their labels, where both have
          some; a mere 0, 1, 2, ... beside others says where they stand.

        With the same `random_state`, ``"k-means++"`` and ``"random"`` draw scikit-learn's random
        numbers in scikit-learn's order.
    n_init : "auto" or int, default="auto"
        Number of starts; the run with the lowest inertia wins.  ``"auto"`` is 10 for ``"random"``
        and callables, and 1 otherwise.
    max_iter : int, default=300
        Largest number of iterations of a run.
    tol : float, default=1e-4
        A run stops when the sum of the squared movements of the centres is at most `tol` times the
        mean over features of the variance of the rows, by their weights (scikit-learn's is without
        them): see ``docs/contract.md``.
    verbose : int, default=0
        If positive, the start and its time are printed, the inertia of each iteration (which is
        computed, at the cost of a pass), the end of each run, and what stays in memory where not
        all rows do.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    copy_x : bool, default=True
        Kept for compatibility: X is neither changed nor copied in any case (unless its type or
        order must change).
    algorithm : {"auto", "lloyd", "hamerly", "exponion", "yinyang", "elkan", "filtering"}, \
            default="auto"
        How distances that cannot matter are skipped.  All give the same result.  ``"lloyd"`` skips
        none.  ``"hamerly"`` (Hamerly 2010) keeps one bound a row, as does ``"exponion"`` (Newling
        and Fleuret 2016), ``"yinyang"`` (Ding et al. 2015) one for each of a few groups of centres,
        ``"elkan"`` (Elkan 2003) one for each centre.  ``"filtering"`` (Kanungo et al. 2002) is for
        dense rows of few features, at most 256: neighbouring rows are looked at together.
        ``"auto"`` decides from the shape and from what iterations cost, and may change as it goes;
        ``algorithm_`` is the one it came to.  It keeps a bound for each centre only where these
        take at most twice what the rows do, and a quarter of the memory that is free.
    device : {"auto", "cpu", "cuda", "cuda:0", ..., "cuda:all", "cuda:0,1", ..., "reference"}, \
            default="auto"
        Where to compute; the result has the same bits everywhere.

        - ``"auto"``: where X lives;
        - ``"cpu"``;
        - ``"cuda"``, ``"cuda:N"``: on a GPU, also for X on the host, which is copied there, in
          blocks in every pass as far as it does not fit (needs PyTorch and Triton:
          ``pip install torch triton``).  Dense rows only, and `algorithm` is always ``"lloyd"``;
        - ``"cuda:all"``, ``"cuda:N,M"``: on several GPUs of this host, an even share of the rows on
          each; rows on one of these GPUs are copied to the others;
        - ``"reference"``: the plain NumPy oracle.

        X on a GPU is never moved silently: a `device` that leaves its own out is an error.
    n_threads : int or None, default=None
        Of the CPU, at most 64 or as many as there are processors.  None: all processors that this
        process may use (by its affinity and its container's quota), or ``OMP_NUM_THREADS`` where it
        is set and smaller.
    stop : None or a rule of :mod:`lloydia.stopping`, default=None
        Replaces `tol`; rules combine with ``|``.
    empty : {"relocate", "keep", "error"}, default="relocate"
        What to do when a cluster loses all its points; see :mod:`lloydia.loop.empty`.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features), float32 or float64
        An ndarray for X on the host; on a GPU an array of X's library there, as is `labels_` and
        what :meth:`predict` and :meth:`transform` return.  Copies and pickles of the estimator hold
        ndarrays, so that they load without a GPU; they take X wherever it lives.
    labels_ : array of shape (n_samples,), int32
        Always equal to ``predict(X)``.
    inertia_ : float
        Sum of the squared distances to the nearest centre, times the weights.
    n_iter_ : int
        Iterations of the best run.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only for data frames with string column names.
    converged_ : bool
        Whether the best run ended by itself, not by `max_iter` or a callback.
    n_distances_ : int
        Point-centre distances (or approximate scores) evaluated by the assignments of all runs.
    n_rechecked_ : int
        Rows whose approximate scores were too close to call and were evaluated again.
    inertia_history_ : list of float
        The inertia of each iteration of the best run, before its update; only with `verbose`, a
        callback or an inertia rule, since it costs a pass over the data.
    algorithm_, device_ : str
        What was used.
    seconds_seeding_ : float
        Wall-clock time spent on the starts.

    Examples
    --------
    >>> from lloydia import KMeans
    >>> import numpy as np
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> kmeans = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> kmeans.labels_
    array([1, 1, 1, 0, 0, 0], dtype=int32)
    >>> kmeans.predict([[0, 0], [12, 3]])
    array([1, 0], dtype=int32)
    >>> kmeans.cluster_centers_
    array([[10.,  2.],
           [ 1.,  2.]])
    """

    _several = 10

    # Where the next fit goes on from.
    _left_off: Snapshot | None = None

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
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.device = device
        self.n_threads = n_threads
        self.stop = stop
        self.empty = empty

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix or Chunks of shape (n_samples, n_features)
            float32 stays float32, half precision is read as float32, everything else becomes
            float64.  Sparse matrices of any format are read as CSR with 32-bit indices.  Arrays on
            a GPU: torch tensors, CuPy, cuDF and others that speak DLPack.
            More than fits into memory: what :func:`lloydia.chunks` opens.  Dask arrays and data
            frames, where a client is current: see :class:`lloydia.dask.KMeans`.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative.  Rows of weight 0 get labels and change nothing else: a fit without them
            has the same result.  A callable `init` sees them.  Where there are some, the other rows
            are copied.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, or X holds NaN or infinity, fewer rows than clusters, or
            magnitudes whose squares overflow, or there is no such GPU.
        ImportError
            For a GPU, without PyTorch and Triton.
        MemoryError
            If the GPU has too little memory free, or chunks may take too little.
        EmptyClusterError
            With ``empty="error"``, when a cluster loses all its points.
        """
        check_parameters(self)
        home = home_of(X)
        draft = self._draft()
        rows = WeightedRows.of(draft._check_rows(X, reset=True), sample_weight)
        rows.refuse_few(self.n_clusters)
        X, weights = rows.X, rows.weights
        if self.verbose and isinstance(X, Chunks):
            print(X.plan(weights is not None, self.n_threads))
        # A start that is on a GPU stays there, unless somebody may want to keep it.
        kept = self._left_off is not None or hasattr(self, "_skl_callbacks")
        there = weights is None and not kept and one_gpu(self.device, X)
        init, n_init = draft._starts(X, there)
        with telling(print) if self.verbose else nullcontext():
            engine = choose(self.device, X, weights, self.n_threads)
        # What draws or calls for a start is not to do so for rows that are refused.
        drawn = isinstance(init, str) or callable(init)
        check_range(engine, weights, init, later=not drawn)
        rule = self._rule(engine)
        features = draft._features()
        tasks = Tasks(self, engine, rows, n_init, self.max_iter, home, features)
        progress = Progress(self, engine, init, tasks.checkpoints, self._left_off)
        for centers in progress.centers_so_far():
            check_range(engine, weights, centers)
        seconds_seeding = 0.0
        for number in steps("runs", list(progress.left(n_init))):
            began = time.perf_counter()
            if self.verbose and n_init > 1:
                print(f"Run {number + 1} of {n_init}")
            if number in progress.halts:
                centers = progress.halts[number].used
            else:
                random_state = progress.random_state if drawn else None
                centers = draft._seed(engine, home(rows.every), init, random_state)
                if callable(init):
                    check_range(engine, weights, centers)
            seconds_seeding += time.perf_counter() - began
            progress.begin_run(number, centers)
            tasks.begin_run()
            result = self._run(number, engine, centers, rule, tasks, progress)
            stopped = tasks.end_run(result.reason == CALLBACK)
            progress.end_run(number, result, stopped)
            if stopped:
                break
        best = progress.end()
        labels = rows.labels(best.labels, best.centers, self.device, self.n_threads)
        self._keep(best, labels, engine, home, features, seconds_seeding)
        self._left_off = None
        tasks.end()
        return self

    @classmethod
    def resume(cls, path):
        """Return an estimator whose next :meth:`fit` goes on from a checkpoint.

        Give that fit the rows and weights that the one before had: its result has the bits of a
        fit without a break, on any engine.

        - A fit that was killed goes on after the last iteration that was kept.
        - One that was over has its result again; with a larger `max_iter` the runs that the
          smaller one ended go on.
        - One that a callback stopped goes on where it was stopped, with that run and those after
          it, as if nothing had stopped it.  Runs that a callback stopped while the fit went on to
          the next are over.

        Parameters
        ----------
        path : str or Path
            What :class:`lloydia.callbacks.Checkpoint` wrote.

        Returns
        -------
        KMeans
            A new estimator with the parameters of that fit; `algorithm`, `device`, `n_threads` and
            `verbose` may be changed before it goes on, and `max_iter` raised.  Callbacks are to be
            set again, a Checkpoint too.  A clone begins anew.  ``inertia_history_`` has all
            iterations if they were watched in both processes; the counters and times are those of
            the second.

        Raises
        ------
        DataError
            There is no such file, or it is no checkpoint, or a damaged one.

        Notes
        -----
        The fit raises :class:`ValueError` where the data are not what they were, as far as their
        shape, their type, some of their values and their means tell, or a parameter that may
        change the result is not.

        Examples
        --------
        >>> from lloydia.callbacks import Checkpoint
        >>> kmeans = KMeans.resume("fit.npz")  # doctest: +SKIP
        >>> kmeans.set_callbacks(Checkpoint("fit.npz"))  # keeps on keeping  # doctest: +SKIP
        >>> kmeans.set_params(max_iter=1000).fit(X)  # the same X  # doctest: +SKIP
        """
        snapshot = load("lloydia.data.checkpoints").load_snapshot(path)
        wanted = set(cls._get_param_names()) - {"client"}
        if other := sorted(wanted ^ snapshot.parameters.keys()):
            raise DataError(
                f"{path} is a checkpoint of another estimator than {cls.__name__}, which differs "
                f"in the parameter {other[0]}: resume it with the class that was fitted."
            )
        model = cls(**estimator_parameters(snapshot))
        model._left_off = snapshot
        return model

    # -- what fit is made of -----------------------------------------------------------------

    def _rule(self, engine: Engine) -> Rule:
        if self.stop is not None:
            return self.stop
        if self.tol > 0:
            return Tolerance(self.tol, engine.mean_variance, engine.magnitudes)
        return Shift(0.0)

    def _run(
        self,
        number: int,
        engine: Engine,
        centers: NDArray,
        rule: Rule,
        tasks: Tasks,
        progress: Progress,
    ) -> Result:
        def on_iteration(report: Report, last: bool) -> bool:
            if self.verbose:
                print(f"Iteration {report.iteration - 1}, inertia {report.inertia}.")
            stop = tasks.end_iteration(report, last)
            progress.end_iteration(number, report, last or stop)
            return stop

        watched = bool(self.verbose) or tasks.active
        result = minimise(
            engine,
            centers,
            algorithm=self._chosen_algorithm(),
            rule=rule,
            max_iter=self.max_iter,
            empty=self.empty,
            history=bool(self.verbose) or tasks.needs_inertia,
            on_iteration=on_iteration if watched else None,
            halt=progress.halts.get(number),
        )
        if self.verbose:
            ended = "Converged" if result.converged else "Ended"
            print(f"{ended} at iteration {result.n_iter - 1}: {result.reason}.")
        return result

    def _chosen_algorithm(self) -> str:
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn(
                f"{option('algorithm', 'elkan')} doesn't make sense for a single cluster. Using "
                "'lloyd' instead.",
                RuntimeWarning,
                stacklevel=5,
            )
            return "lloyd"
        return self.algorithm

    def _keep(
        self,
        best: Result,
        labels: Any,
        engine: Engine,
        home: Callable[[Any], Any],
        features: dict[str, Any],
        seconds_seeding: float,
    ) -> None:
        """Set the fitted attributes, all at once: an interrupted fit leaves the old result.

        `labels` are those of all rows; the best run has those of positive weight.
        """
        # len() of a tensor takes longer.
        k = best.centers.shape[0]
        warn_of_fewer(k if best.full else n_distinct(best.labels, k), k, stacklevel=4)
        result = {
            "cluster_centers_": home(best.centers),
            "labels_": home(labels),
            "inertia_": best.inertia,
            "n_iter_": best.n_iter,
            "converged_": best.converged,
            "n_distances_": engine.n_distances,
            "n_rechecked_": engine.n_rechecked,
            "algorithm_": best.algorithm,
            "device_": engine.name,
            "seconds_seeding_": seconds_seeding,
        }
        if best.history:
            result["inertia_history_"] = best.history
        self._replace_result(features | result)
