"""Auto: the choice of the fastest algorithm during a run.

All algorithms give the same result, so a run may change its algorithm between two iterations, and
the choice may depend on measured time.  Another algorithm is tried for a few iterations once the
run has taken several times as long as the trial will take.  The faster of the two continues.  The
slower one is tried again much later, because bounds become tighter as centres move less.

* Up to four features: Lloyd first.  Filtering is tried once the run has taken as long as ordering
  the rows takes, so the total is hardly more than twice that of the better one.  It is tried
  earlier if ordering is probably cheap compared with the rest of the run: at once with many
  clusters, or when many rows still change their cluster after a few iterations.
* More features: Hamerly, which is Lloyd while its bounds do not pay; or, if scoring a row against
  all centres is cheap, Lloyd first and Hamerly later.  Up to eight features, filtering is tried,
  although boxes become less effective with more features.  With more than eight features and many
  clusters, yinyang is tried, and for many features elkan if its bounds take little memory compared
  with the rows; but neither if the scan computes its products on matrix units.
* Sparse rows, or so few numbers that an iteration is mostly overhead: Lloyd.  Short runs use Lloyd
  as well, because bounds and boxes would have no time to pay.
"""

from __future__ import annotations

from collections.abc import Callable

from lloydia.algorithms import elkan, yinyang

__all__ = ["Auto", "may_take"]

# Numbers of features up to which boxes of neighbouring rows are small in all, or most, directions.
FLAT, LOW = 4, 8

# Below this number of products per iteration, Lloyd's iterations are too short to skip anything.
SMALL = 20_000_000

# The number of clusters from which bounds of groups pay.
MANY = 128

# The number of features from which a bound for each centre pays.
WIDE = 256

# Costs in units of one feature of one of Lloyd's products: ordering a row costs ORDER, scanning a
# row costs BASE before its first product, and each product costs EXTRA in addition to its features.
ORDER, BASE, EXTRA = 10_000, 350, 6

# Iterations of a trial: the first one makes the bounds, and the last one is compared.  Each takes
# at most about as long as one of Lloyd's.
TRIAL = 3

# A trial is made once the run has taken this many times as long as the trial, and again once the
# run's time has grown by this factor.
WAIT, WAIT_GROWTH = 8.0, 3.0

# Bounds are tried after this many iterations of Lloyd's; bounds of single centres earlier.  Bounds
# skip little while centres move far, and most distances once the centres have nearly settled.
SOON, SOON_PER_CENTER = 12.0, 8.0

# A run of k clusters mostly takes more than this many iterations per cluster.
LASTING = 0.125

# If at least this share of the rows changes cluster in iteration WATCHED, mostly more than LONG
# iterations follow; well-separated clusters are found earlier.
WATCHED, CHANGING, LONG = 3, 0.03, 18

# The time of the tried algorithm must be below this share of the other's, which has become faster
# meanwhile.
BETTER = 0.8


# The number of iterations in which bounds save less than they cost, and the products per row that
# Lloyd computes in less time than its bounds take at first.
BRIEF, SHORT = 16, 4_000


class Auto:
    """The choice of the algorithm of the next iteration.

    Parameters
    ----------
    n_samples, n_features, k : int
    sparse : bool
    ordered : bool
        Whether the rows have been ordered already.
    units : bool
        Whether Lloyd's products are computed on matrix units, which a scan of groups cannot use.
    max_iter : int
        The largest number of iterations of the run.
    allows : callable
        It returns whether an algorithm's bounds may take their memory; it is called before a trial.

    Attributes
    ----------
    using : str
        The algorithm of the next iteration.
    """

    def __init__(
        self,
        n_samples: int,
        n_features: int,
        k: int,
        sparse: bool,
        ordered: bool,
        units: bool,
        max_iter: int,
        allows: Callable[[str], bool],
    ) -> None:
        self.using = "lloyd"
        self.others: list[str] = []
        # The time to order the rows, in iterations of Lloyd's.
        order = 0.0 if ordered else ORDER / (BASE + k * (n_features + EXTRA))
        # The iteration from which on no trial can pay.
        self.late = max_iter - order
        # The time that the run must have taken before the next trial, in the same unit.
        self.patience, self.allows = SOON, allows
        if not sparse and n_samples * n_features * k >= SMALL:
            if n_features <= FLAT:
                self.others, self.patience = ["filtering"], order
                if order < min(LASTING * k, max_iter):
                    self.using = self.others.pop()
            elif max_iter > BRIEF:
                if k * (n_features + EXTRA) < SHORT:
                    # With separate clusters, bounds skip nearly all rows after few iterations.
                    self.others = ["hamerly"]
                else:
                    self.using = "hamerly"
                if n_features <= LOW:
                    self.others.append("filtering")
                    self.patience = WAIT * (TRIAL + order)
                elif k >= MANY and not units:
                    if n_features >= WIDE and allows("elkan"):
                        self.others.append("elkan")
                        self.patience = SOON_PER_CENTER
                    self.others.append("yinyang")
        # Whether many changing rows make filtering start early: only for few features, and if
        # enough iterations are left to pay for the order.
        waits = n_features <= FLAT and self.using == "lloyd"
        self.watched = waits and order < min(LONG, (max_iter - WATCHED) / 2)
        self.iteration = self.left = 0
        self.spent = 0.0
        self.lloyd = float("inf")
        self.incumbent = (self.using, float("inf"))

    def after(self, seconds: float, changed: float) -> str:
        """Note an iteration's seconds and share of changed rows; return the next algorithm."""
        self.iteration += 1
        if self.watched and self.iteration == WATCHED and changed >= CHANGING:
            self.patience = 0.0
        # Iterations of any algorithm take at most as long as Lloyd's; more time is spent waiting.
        self.spent += min(seconds, self.lloyd)
        if self.iteration <= 2:
            # The first iteration may include the compilation of kernels.
            self.lloyd = min(self.lloyd, seconds)
            self.spent = self.iteration * self.lloyd
        if self.left:
            self.left -= 1
            if self.left == 0:
                self._end_trial(seconds)
        elif self.spent >= self.patience * self.lloyd and self._may_try():
            self.incumbent = (self.using, seconds)
            self.using, self.left = self.others.pop(0), TRIAL
        return self.using

    def _may_try(self) -> bool:
        """Return whether another algorithm is left, with enough time and memory to pay."""
        if not 1 < self.iteration < self.late:
            return False
        while self.others and not self.allows(self.others[0]):
            self.others.pop(0)
        return bool(self.others)

    def _end_trial(self, seconds: float) -> None:
        """End a trial whose last iteration took `seconds`."""
        name, before = self.incumbent
        better = seconds < BETTER * before or not self.allows(name)
        self.others.append(name if better else self.using)
        self.using = self.using if better else name
        self.patience = max(WAIT * TRIAL, WAIT_GROWTH * self.spent / self.lloyd)


def may_take(
    n_samples: int, k: int, row_bytes: int, spare: float, bounds_per_center: bool, algorithm: str
) -> bool:
    """Return whether an algorithm's bounds for k centres may take their memory now.

    Parameters
    ----------
    n_samples, k, row_bytes : int
    spare : float
        The bytes per row that are available for bounds of many centres.
    bounds_per_center : bool
        Whether bounds of single centres may be kept at all.
    algorithm : str
    """
    if algorithm == "elkan":
        fits = bounds_per_center and elkan.bytes_of_row(k) <= spare
        return fits and elkan.is_modest(n_samples, k, row_bytes)
    return algorithm != "yinyang" or yinyang.bytes_of_row(k, row_bytes) <= spare
