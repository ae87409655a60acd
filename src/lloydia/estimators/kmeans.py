"""KMeans, the scikit-learn estimator."""

from __future__ import annotations

from lloydia.backends.engine import Engine
from lloydia.callbacks import CallbackSupportMixin, with_callbacks
from lloydia.data.columns import DataError
from lloydia.data.device_arrays import n_distinct
from lloydia.estimators.base_kmeans import BaseKMeans, warn_of_fewer
from lloydia.estimators.given import Given
from lloydia.estimators.runs import Runs
from lloydia.imports import load
from lloydia.loop.resuming import Snapshot, estimator_parameters
from lloydia.loop.run import run_iterations
from lloydia.loop.tolerance import Tolerance
from lloydia.parameters import check_parameters
from lloydia.stopping import Rule, Shift

__all__ = ["KMeans"]


class KMeans(CallbackSupportMixin, BaseKMeans):
    """k-means clustering with the same result on any number of threads and on a GPU.

    A drop-in replacement for :class:`sklearn.cluster.KMeans`, with the same parameters, attributes
    and methods and four more parameters: `device`, `n_threads`, `stop` and `empty`.  The result is
    defined to the last bit (see ``docs/contract.md``).  `algorithm`, `device` and `n_threads`
    change speed and memory, never the result.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k.
    init : str, array or callable, default="k-means++"
        How the initial centres are chosen:

        - ``"k-means++"``: each centre is drawn with probability proportional to the squared
          distance to the nearest centre chosen before it, and is the best of
          ``2 + int(log(n_clusters))`` draws (Arthur and Vassilvitskii 2007);
        - ``"random"``: distinct rows, drawn with probability proportional to their weights
          (Forgy 1965);
        - ``"first"``: the first `n_clusters` rows (MacQueen 1967);
        - ``"farthest"``: a random row first; each further centre is the row farthest from the
          centres chosen before it (Gonzalez 1985);
        - ``"k-means||"``: five rounds draw about ``2 * n_clusters`` candidates each;
          ``"k-means++"`` then chooses the centres among the candidates (Bahmani et al. 2012);
        - an array of shape (n_clusters, n_features);
        - a callable, called as ``init(X, n_clusters, random_state=...)``, that returns such an
          array.

        The array may be a data frame.  If X has column labels too, the columns are matched by
        label, and columns labelled 0, 1, 2, ... are matched by position.
        With the same `random_state`, ``"k-means++"`` and ``"random"`` draw scikit-learn's random
        numbers in scikit-learn's order.
    n_init : "auto" or int, default="auto"
        Number of runs, each from its own start; the run with the lowest inertia is kept.
        ``"auto"`` is 10 for ``"random"`` and callables, and 1 otherwise.
    max_iter : int, default=300
        Largest number of iterations of a run.
    tol : float, default=1e-4
        A run stops when the sum of the squared movements of the centres is at most `tol` times the
        mean variance of the features.  The variance is weighted by `sample_weight`, unlike
        scikit-learn's: see ``docs/contract.md``.
    verbose : int, default=0
        If positive, the fit prints the start and its time, the inertia of each iteration (computing
        it costs a pass over the rows), the end of each run, and, if X is too large for memory, how
        many rows stay in memory.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers that choose the starts.
    copy_x : bool, default=True
        Accepted for compatibility and ignored: X is never changed, and is copied only if its type
        or memory order must change.
    algorithm : {"auto", "lloyd", "hamerly", "exponion", "yinyang", "elkan", "filtering"}, \
            default="auto"
        How unnecessary distances are skipped.  All algorithms give the same result.

        - ``"lloyd"`` (Lloyd 1982) skips none.
        - ``"hamerly"`` (Hamerly 2010) and ``"exponion"`` (Newling and Fleuret 2016) keep one lower
          bound per row.
        - ``"yinyang"`` (Ding et al. 2015) keeps one lower bound per row for each of a few groups of
          centres.
        - ``"elkan"`` (Elkan 2003) keeps one lower bound per row for each centre.
        - ``"filtering"`` (Kanungo et al. 2002) tests boxes of neighbouring rows.  It takes dense
          rows of at most 256 features and is fast for few features.
        - ``"auto"`` chooses by the shape of X and by the measured time of iterations, and may
          change the algorithm during a run; ``algorithm_`` is the last one.  It uses ``"elkan"``
          only if the bounds take at most twice the memory of X and a quarter of the free memory.
    device : {"auto", "cpu", "cuda", "cuda:0", ..., "cuda:all", "cuda:0,1", ..., "reference"}, \
            default="auto"
        Where to compute.  The result is the same everywhere.

        - ``"auto"``: on the device that holds X;
        - ``"cpu"``: on the CPU;
        - ``"cuda"``, ``"cuda:N"``: on a GPU (needs PyTorch and Triton: ``pip install torch
          triton``).  X on the CPU is copied to the GPU; rows that do not fit there are sent in
          blocks in every pass.  X must be dense, and every `algorithm` is computed as ``"lloyd"``;
        - ``"cuda:all"``, ``"cuda:N,M"``: on several GPUs of this machine, with an equal share of
          the rows on each; X on one of these GPUs is copied to the others;
        - ``"reference"``: in plain NumPy, slowly, for tests and study.

        X on a GPU is never moved silently: a `device` that does not include that GPU is an error.
    n_threads : int or None, default=None
        Number of CPU threads.  Numbers above 64 are reduced to 64, or to the number of processors
        if that is larger.  None: as many threads as processors that this process may use (by its
        affinity and its container's quota), or ``OMP_NUM_THREADS`` if that is set and smaller.
    stop : None or a rule of :mod:`lloydia.stopping`, default=None
        A stop rule that replaces `tol`; rules combine with ``|``.
    empty : {"relocate", "keep", "error"}, default="relocate"
        What to do when a cluster loses all its rows:

        - ``"relocate"``: the cluster takes the row farthest from its own centre;
        - ``"keep"``: the centre stays where it is;
        - ``"error"``: the fit raises :class:`lloydia.EmptyClusterError`.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features), float32 or float64
        An ndarray if X was on the CPU.  If X was on a GPU, an array of the same library on that
        GPU; this also holds for `labels_` and for the results of :meth:`predict` and
        :meth:`transform`.  Copies and pickles of the estimator hold ndarrays, so that they load
        without a GPU; they accept X on any device.
    labels_ : array of shape (n_samples,), int32
        The index of the nearest centre of each row; always equal to ``predict(X)``.
    inertia_ : float
        Sum over the rows of weight times squared distance to the nearest centre.
    n_iter_ : int
        Number of iterations of the best run.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names of X; only if X was a data frame whose column names are all strings.
    converged_ : bool
        Whether the best run ended by convergence or a stop rule, not by `max_iter` or a callback.
    n_distances_ : int
        Number of row-centre distances, exact or approximate, that the assignments of all runs
        computed.
    n_rechecked_ : int
        Number of rows, summed over all iterations and runs, that needed the exact float64 distance
        because their approximate distances were too close.
    inertia_history_ : list of float
        The inertia of each iteration of the best run, before its update.  It exists only with
        `verbose`, a callback or an inertia rule, because computing it costs a pass over the rows.
    algorithm_ : str
        The algorithm that the best run ended with.  On a GPU it is ``"lloyd"``, or ``"hamerly"`` if
        the run skipped rows by two bounds per row, as it does late in long fits of many clusters.
    device_ : str
        The device that computed the fit.
    seconds_seeding_ : float
        Wall-clock time, in seconds, that choosing the starts took.

    References
    ----------
    - S. P. Lloyd, "Least squares quantization in PCM", *IEEE Transactions on Information Theory*
      28(2), 1982.
    - D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", *SODA* 2007.
    - B. Bahmani et al., "Scalable k-means++", *PVLDB* 5(7), 2012.
    - C. Elkan, "Using the triangle inequality to accelerate k-means", *ICML* 2003.
    - E. W. Forgy, "Cluster analysis of multivariate data: efficiency versus interpretability of
      classifications", *Biometrics* 21, 1965.
    - T. F. Gonzalez, "Clustering to minimize the maximum intercluster distance", *Theoretical
      Computer Science* 38, 1985.
    - G. Hamerly, "Making k-means even faster", *SDM* 2010.
    - T. Kanungo et al., "An efficient k-means clustering algorithm: analysis and implementation",
      *IEEE Transactions on Pattern Analysis and Machine Intelligence* 24(7), 2002.
    - J. MacQueen, "Some methods for classification and analysis of multivariate observations",
      *Fifth Berkeley Symposium on Mathematical Statistics and Probability*, 1967.
    - J. Newling and F. Fleuret, "Fast k-means with accurate bounds", *ICML* 2016.
    - Y. Ding et al., "Yinyang k-means: a drop-in replacement of the classic k-means with consistent
      speedup", *ICML* 2015.

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

    # The state that the next fit resumes.
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
        X : array-like, sparse matrix, data frame or Chunks of shape (n_samples, n_features)
            The rows.  float32 stays float32, half precision is converted to float32, everything
            else to float64.  Sparse matrices of any format are converted to CSR with 32-bit
            indices.  Arrays on a GPU may be torch tensors, CuPy arrays, cuDF data frames, or of
            another library that supports DLPack.  For data larger than memory, pass what
            :func:`lloydia.chunks` returns.  Dask arrays and data frames need a current Dask client:
            see :class:`lloydia.dask.KMeans`.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Finite weights >= 0; None gives every row the weight 1.  Rows of weight 0 get labels and
            have no other effect: a fit without them has the same result.  A callable `init`
            receives all rows, with those of weight 0.  If some weights are 0, the rows of positive
            weight are copied.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, if X holds NaN or infinity, if there are fewer rows of
            positive weight than clusters, if squared distances could overflow, or if there is no
            such GPU.
        ImportError
            If `device` needs a GPU and PyTorch or Triton is not installed.
        MemoryError
            If the GPU has too little free memory, or the memory limit of chunks is too small.
        EmptyClusterError
            If ``empty="error"`` and a cluster loses all its rows.

        Warns
        -----
        ConvergenceWarning
            If the fit found fewer distinct clusters than `n_clusters`.
        RuntimeWarning
            If `init` is an array and `n_init` is neither 1 nor ``"auto"``: one run is made.  Also
            if `algorithm` is ``"elkan"`` and there is one cluster: ``"lloyd"`` is used.
        """
        check_parameters(self)
        given = Given.to(self, X, sample_weight)
        engine = given.engine()
        runs = Runs(self, given, engine)
        with engine.expecting(runs.expected()):
            for number in runs.numbers():
                centers = runs.seed(number)
                result = run_iterations(engine, centers, **runs.options(number))
                if runs.end_run(number, result):
                    break
        self._keep(given, engine, runs)
        return self

    @classmethod
    def resume(cls, path):
        """Return an estimator whose next :meth:`fit` continues from a checkpoint.

        Call that `fit` with the same rows and weights as the interrupted fit.  The result is the
        same as that of an uninterrupted fit, on any device.

        - A fit that was killed continues after the last iteration in the checkpoint.
        - A fit that was complete returns its result again.  With a larger `max_iter`, the runs that
          reached the old `max_iter` continue.
        - A fit that a callback stopped continues with the run in which it was stopped, and with the
          runs after it.  If a callback stopped a run and the fit continued with the next run, the
          stopped run does not continue.

        Parameters
        ----------
        path : str or Path
            A file that :class:`lloydia.callbacks.Checkpoint` wrote.

        Returns
        -------
        KMeans
            A new estimator with the parameters of the interrupted fit.  Before you call `fit` you
            may change `algorithm`, `device`, `n_threads` and `verbose`, and raise `max_iter`.
            Callbacks, a Checkpoint included, must be set again.  A clone of this estimator starts
            from the beginning.  ``inertia_history_`` holds all iterations if the inertia was
            computed in both processes; counters and times are those of the second process alone.

        Raises
        ------
        DataError
            If there is no such file, or it is not a checkpoint or is damaged.

        Notes
        -----
        The `fit` raises :class:`ValueError` if the data differ from those of the interrupted fit,
        as far as a comparison of their shape, type, some of their values and their means shows, or
        if a parameter that can change the result differs.

        Examples
        --------
        >>> from lloydia.callbacks import Checkpoint
        >>> kmeans = KMeans.resume("fit.npz")  # doctest: +SKIP
        >>> kmeans.set_callbacks(Checkpoint("fit.npz"))  # doctest: +SKIP
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

    def _reads_start(self) -> bool:
        # A checkpoint or a callback may need it.
        return self._left_off is not None or hasattr(self, "_skl_callbacks")

    def _keep(self, given: Given, engine: Engine, runs: Runs) -> None:
        """Set the fitted attributes all at once: an interrupted fit leaves the old result."""
        best, home = runs.best(), given.home
        labels = given.rows.labels(best.labels, best.centers, self.device, self.n_threads)
        # len() of a tensor is slower than its shape.
        k = best.centers.shape[0]
        warn_of_fewer(k if best.full else n_distinct(best.labels, k), k)
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
            "seconds_seeding_": runs.seconds_seeding,
        }
        if best.history:
            result["inertia_history_"] = best.history
        self._replace_result(given.features | result)
        self._left_off = None
        runs.end()
