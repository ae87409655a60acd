"""Auto: the algorithm that is cheapest as a run goes on.

All algorithms give the same bits, so a run may change from one to another between two iterations,
and which one it uses may depend on the clock.  Another algorithm is tried for a few iterations once
the run has cost several times what the trial will; the faster of the two goes on.  One that lost
comes again much later, for bounds get better as centres settle.

* Few features: Lloyd, then filtering, once the run has cost as much as it takes to put the rows in
  order, so hardly more than twice the better of the two.  Sooner where the order is probably cheap
  beside what is to come: at once with many clusters, or when many rows still change cluster after
  a few iterations.
* More: Hamerly, which is Lloyd while its bounds do not pay, or Lloyd and later Hamerly where a row
  is soon scored against all centres.  Up to eight features filtering is tried, though boxes grow
  with them; beyond, with many clusters, yinyang, or of many features elkan where its bounds take
  little beside the rows, unless the scan is by far the fastest way to make a product.
* CSR rows, or so few numbers that an iteration is mostly overhead: Lloyd.  A run that ends soon is
  Lloyd's too: bounds and boxes are not begun that have no time to pay.
"""

from __future__ import annotations

from collections.abc import Callable

from lloydia.algorithms import elkan, yinyang

__all__ = ["Auto", "may_take"]

# Features up to which boxes of neighbouring rows are small in all directions, or in most.
FLAT, LOW = 4, 8

# Below so many products an iteration, Lloyd's is too short to be worth skipping.
SMALL = 20_000_000

# Clusters from which groups of them pay.
MANY = 128

# Features from which a distance takes so long that a bound for each centre pays.
WIDE = 256

# To put a row in order costs what about so many of Lloyd's products do; a row costs BASE before the
# first of its products, and a product as much as EXTRA more of its features.
ORDER, BASE, EXTRA = 10_000, 350, 6

# Iterations of a trial: the first makes the bounds, the last is compared.  Each costs at most about
# what one of Lloyd's does.
TRIAL = 3

# A trial is made once the run has cost so many times as much, and again when it has grown so much.
WAIT, AGAIN = 8.0, 3.0

# Bounds are begun after so many iterations of Lloyd's, those of single centres sooner.  While
# centres move far they skip little; begun when those nearly rest they skip most at once.
SOON, SINGLE = 12.0, 8.0

# A run of many clusters lasts long: most often more than so many iterations a cluster.
LASTING = 0.125

# Where a share of at least MOVING of the rows changes in iteration WATCHED, most often more than
# LONG iterations are to come: clusters that lie apart are found sooner.
WATCHED, MOVING, LONG = 3, 0.03, 18

# The challenger must be so much faster: the other one, too, has become faster since it stopped.
BETTER = 0.8


# Iterations in which bounds save less than they cost, and the products of a row that Lloyd makes in
# less time than its bounds take at first.
BRIEF, SHORT = 16, 4_000


class Auto:
    """What to use next.

    Parameters
    ----------
    n_samples, n_features, k : int
    sparse : bool
    ordered : bool
        Whether the rows are in order already.
    units : bool
        Whether Lloyd's products are made on matrix units, which no scan of a few groups can use.
    max_iter : int
        Iterations of the run at most.
    allows : callable
        Returns whether the memory of an algorithm's bounds may be taken; asked before a trial.

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
        # To put the rows in order, in iterations of Lloyd's.
        order = 0.0 if ordered else ORDER / (BASE + k * (n_features + EXTRA))
        # The iteration from which on no trial can pay.
        self.late = max_iter - order
        # What the run must cost before the next trial, in the same.
        self.patience, self.allows = SOON, allows
        if not sparse and n_samples * n_features * k >= SMALL:
            if n_features <= FLAT:
                self.others, self.patience = ["filtering"], order
                if order < min(LASTING * k, max_iter):
                    self.using = self.others.pop()
            elif max_iter > BRIEF:
                if k * (n_features + EXTRA) < SHORT:
                    # Soon: where clusters lie apart, bounds skip nearly all after a few iterations.
                    self.others = ["hamerly"]
                else:
                    self.using = "hamerly"
                if n_features <= LOW:
                    self.others.append("filtering")
                    self.patience = WAIT * (TRIAL + order)
                elif k >= MANY and not units:
                    if n_features >= WIDE and allows("elkan"):
                        self.others.append("elkan")
                        self.patience = SINGLE
                    self.others.append("yinyang")
        # Whether the rows are soon put in order if many still change: of few features, where there
        # are iterations left to pay for it.
        waits = n_features <= FLAT and self.using == "lloyd"
        self.watched = waits and order < min(LONG, (max_iter - WATCHED) / 2)
        self.iteration = self.left = 0
        self.spent = 0.0
        self.lloyd = float("inf")
        self.incumbent = (self.using, float("inf"))

    def after(self, seconds: float, moving: float) -> str:
        """Take what an iteration cost, and what share of the rows it moved; return what to use."""
        self.iteration += 1
        if self.watched and self.iteration == WATCHED and moving >= MOVING:
            self.patience = 0.0
        # No algorithm's iterations cost more than Lloyd's: what takes longer waits for a processor.
        self.spent += min(seconds, self.lloyd)
        if self.iteration <= 2:
            # The first one may have compiled kernels: that says nothing of the rest.
            self.lloyd = min(self.lloyd, seconds)
            self.spent = self.iteration * self.lloyd
        if self.left:
            self.left -= 1
            if self.left == 0:
                self._settle(seconds)
        elif self.spent >= self.patience * self.lloyd and self._may_try():
            self.incumbent = (self.using, seconds)
            self.using, self.left = self.others.pop(0), TRIAL
        return self.using

    def _may_try(self) -> bool:
        """Return whether there is another algorithm, and time and memory for it to pay."""
        if not 1 < self.iteration < self.late:
            return False
        while self.others and not self.allows(self.others[0]):
            self.others.pop(0)
        return bool(self.others)

    def _settle(self, seconds: float) -> None:
        """End a trial whose last iteration cost that."""
        name, before = self.incumbent
        better = seconds < BETTER * before or not self.allows(name)
        self.others.append(name if better else self.using)
        self.using = self.using if better else name
        self.patience = max(WAIT * TRIAL, AGAIN * self.spent / self.lloyd)


def may_take(
    n_samples: int, k: int, row_bytes: int, spare: float, single: bool, algorithm: str
) -> bool:
    """Return whether the memory of an algorithm's bounds with k centres may be taken now.

    Parameters
    ----------
    n_samples, k, row_bytes : int
    spare : float
        Bytes a row for bounds of groups of centres, or of single ones.
    single : bool
        Whether those of single ones may be kept at all.
    algorithm : str
    """
    if algorithm == "elkan":
        fits = single and elkan.bytes_of_row(k) <= spare
        return fits and elkan.is_modest(n_samples, k, row_bytes)
    return algorithm != "yinyang" or yinyang.bytes_of_row(k, row_bytes) <= spare
