"""
A stop rule of your own
=======================

``stop=`` takes a rule, and ``|`` combines rules. A rule of your own is a class with one method,
which gets the report of each iteration and returns whether to stop.
"""

import matplotlib.pyplot as plt
import numpy as np

from lloydia import KMeans
from lloydia.stopping import Centers, Inertia, Labels, Rule

X = np.random.default_rng(0).random((50_000, 2)).astype(np.float32)

# %%
# This rule stops when the relative drop of the inertia was below a limit in several iterations in
# succession. With ``needs_inertia = True`` the reports have the inertia, which costs a pass over
# the rows in each iteration.


class Stalled(Rule):
    """Stop when the inertia hardly fell in `patience` iterations in succession."""

    needs_inertia = True

    def __init__(self, relative, patience=3):
        self.relative, self.patience, self.stalled = relative, patience, 0

    def __call__(self, report):
        """Return whether to stop."""
        hardly = report.drop is not None and report.drop < self.relative * report.inertia
        self.stalled = self.stalled + 1 if hardly else 0
        return self.stalled >= self.patience


rules = {
    "tol=1e-4 (the default)": None,
    "Labels(fraction=0.001)": Labels(fraction=0.001),
    "Centers(atol=1e-3)": Centers(atol=1e-3),
    "Centers(1e-4) | Inertia(0.05)": Centers(1e-4) | Inertia(0.05),
    "Stalled(relative=1e-3)": Stalled(relative=1e-3),
}

# %%
# All fits start from the same centres, so their inertias follow the same curve, and each fit ends
# at a point of the curve. The rule of the first fit, ``Inertia(drop=0)``, never stops it, because
# an inertia never falls by less than 0. The rule only makes the fit record ``inertia_history_``.

start = X[:40]
history = KMeans(40, init=start, stop=Inertia(drop=0), max_iter=150).fit(X).inertia_history_

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(range(1, len(history) + 1), history, color="0.6")
for number, (name, rule) in enumerate(rules.items()):
    model = KMeans(40, init=start, stop=rule).fit(X)
    ended = min(model.n_iter_, len(history))
    ax.plot(ended, history[ended - 1], "o", color=f"C{number}", label=f"{name}: {model.n_iter_}")
    print(f"{name:32} {model.n_iter_:4} iterations, inertia {model.inertia_:.3f}")
ax.set_xlabel("iteration")
ax.set_ylabel("inertia")
ax.set_ylim(history[-1] * 0.995, history[5])
ax.legend(title="rule: iterations")
