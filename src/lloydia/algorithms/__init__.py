"""Algorithms: which distances need no evaluation, and why skipping them is safe.

Each algorithm is a class that holds its bounds; the docstring of its module states the
inequalities.  The CPU engine applies them (:mod:`lloydia.backends.cpu.steps`); a GPU applies those
of Hamerly late in a run (:mod:`lloydia.backends.cuda.matmul.pruning`).  All algorithms give the
same labels.  :mod:`geometry` rounds bounds so that they stay bounds; :mod:`auto` chooses the
algorithm during a run.
"""

from __future__ import annotations

from lloydia.algorithms.elkan import Elkan
from lloydia.algorithms.exponion import Exponion
from lloydia.algorithms.filtering import Filtering
from lloydia.algorithms.hamerly import Hamerly
from lloydia.algorithms.lloyd import Lloyd
from lloydia.algorithms.yinyang import Yinyang

__all__ = ["ALGORITHMS", "CLASSES"]

CLASSES = {
    "lloyd": Lloyd,
    "elkan": Elkan,
    "hamerly": Hamerly,
    "exponion": Exponion,
    "yinyang": Yinyang,
    "filtering": Filtering,
}

ALGORITHMS = ("auto", *CLASSES)
