"""Rung 13: rung 10 with the points stored feature after feature, as B has it ("transposed").

What changed from rung 10: the order of one array; the kernel is the same.

Why it should help: the 32 threads of a warp read feature f of 32 neighbouring points at the same
time.  Row after row those numbers lie d apart, and every read fetches d times the memory that it
uses; feature after feature they are neighbours, and one transaction fetches them all.  With two
features the cache makes up for most of it, since the second read finds what the first fetched.

B stored points and centres coordinate after coordinate, and printed that the run became faster with
larger blocks up to 512 threads.  It puts the gain down to coalesced loads.
"""

from __future__ import annotations

from numpy.typing import NDArray

from lloydia.ladder.device import Placed
from lloydia.ladder.r10_naive import assign, round_trip
from lloydia.ladder.rung import About, Outcome
from lloydia.stopping import Labels, Rule

ABOUT = About(
    "transposed: points feature after feature",
    "B",
    "cuda",
    uses=frozenset({"block"}),
    stop=Labels(0.001),
)


def fit(
    X: NDArray,
    centers: NDArray,
    *,
    rule: Rule | None,
    max_iter: int,
    threads: int = 1,
    block: int = 256,
) -> Outcome:
    """Run rung 10 on feature-major points."""
    on = Placed(X, centers, block, order="F")

    def scan() -> None:
        assign[on.blocks, block](on.X, on.centers, on.labels, on.changed)

    return round_trip(on, X, centers, scan, rule, max_iter)
