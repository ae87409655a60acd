"""D: photographs' colours, on one thread, with OpenMP, by atomics and by repeated reductions.

The pixels of two photographs (scikit-learn's china and flower), side by side, are repeated up to
the size wanted, or thinned out evenly down to it.  They are given as float32.
"""

from __future__ import annotations

from lloydia.ladder.experiments.d.drawing import draw
from lloydia.ladder.experiments.d.runs import run
from lloydia.ladder.experiments.d.sheets import sheets

__all__ = ["TITLE", "draw", "run", "sheets"]

TITLE = "D: OpenMP, atomics and repeated reductions on photographs"
