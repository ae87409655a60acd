"""Stop rules: conditions that end a run early.

The estimator calls its rule after every iteration and stops the run if the rule returns True.  Two
rules combined with ``|`` stop the run as soon as one of them returns True.  With any rule, a run
also ends when no row changed its cluster, and after `max_iter` iterations.
"""

from __future__ import annotations

from lloydia.backends.reports import Report
from lloydia.stopping.rules import Centers, Either, Inertia, Labels, Rule, Shift
from lloydia.stopping.text import parse, spell

__all__ = [
    "Centers",
    "Either",
    "Inertia",
    "Labels",
    "Report",
    "Rule",
    "Shift",
    "parse",
    "spell",
]
