"""Plans by where a few regions of memory are: nothing is looked up but that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from lloydia.backends.cuda.plans import Plan
from lloydia.backends.cuda.series import Series

__all__ = ["Within", "within"]


class Within(NamedTuple):
    """A plan whose parts lie in regions, the same way each time.

    Attributes
    ----------
    plan : Plan
    places : sequence of (int, int)
        Of each part, in which region it lies, and how far in.
    """

    plan: Plan
    places: Sequence[tuple[int, int]]

    def at(self, regions: Sequence[int], rest: int = 0, zeros: int = 0) -> Series:
        """Return the launches where the regions begin there, and scratch does."""
        return self.plan.at([regions[i] + begin for i, begin in self.places], rest, zeros)


def within(
    plan: Plan | None, parts: Sequence[torch.Tensor], regions: Sequence[torch.Tensor]
) -> Within | None:
    """Return a plan by its regions; None where there is no plan, or a part lies in none of them.

    Parameters
    ----------
    plan : Plan or None
    parts : sequence of torch.Tensor
        Of its layout.
    regions : sequence of torch.Tensor
        None shares memory with another.
    """
    if plan is None:
        return None
    places = []
    for part in parts:
        there = [
            (i, part.data_ptr() - region.data_ptr())
            for i, region in enumerate(regions)
            if 0 <= part.data_ptr() - region.data_ptr() < region.nbytes
        ]
        if not there:
            return None
        places.append(there[0])
    return Within(plan, tuple(places))
