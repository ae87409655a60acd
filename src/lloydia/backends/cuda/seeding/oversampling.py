"""The rounds of k-means|| on a GPU: each row has a random number, see :mod:`exact.counter`."""

from __future__ import annotations

import torch

from lloydia.exact import sums as exact
from lloydia.exact.counter import GOLDEN, MIX

__all__ = ["chosen", "integers", "loads"]


def signed(number: int) -> int:
    """Return the int64 with the bits of an unsigned number."""
    return number - (1 << 64) if number >> 63 else number


def uniforms(key: int, before: int, n: int, device: torch.device) -> torch.Tensor:
    """Return the random numbers of n rows that follow `before` others: shape (n,), float64."""
    z = torch.arange(before + 1, before + n + 1, dtype=torch.int64, device=device)
    z = z.mul_(signed(GOLDEN)).add_(signed(key))
    for shift, multiplier in MIX:
        z = (z ^ shifted(z, shift)).mul_(signed(multiplier))
    return shifted(z, 11).double().mul_(2.0**-53)


def shifted(z: torch.Tensor, shift: int) -> torch.Tensor:
    """Shift right and fill with zeros."""
    return (z >> shift).bitwise_and_((1 << (64 - shift)) - 1)


def integers(
    values: torch.Tensor, weights: torch.Tensor | None, grid: tuple[int, int]
) -> torch.Tensor:
    """Return weight times values as integers on a grid: shape (n,), stored as float64."""
    low, high = exact.two_factors(grid[0] - grid[1])
    terms = values * 1.0 if weights is None else weights * values
    return terms.mul_(low).mul_(high).round_()


def chosen(terms: torch.Tensor, key: int, factor: float, total: int, before: int) -> torch.Tensor:
    """Return the rows with ``u * total < factor * term``, ascending: int64.

    `total` is the sum of the terms of all parts; `before` is how many rows precede these.
    """
    numbers = uniforms(key, before, len(terms), terms.device)
    return torch.nonzero(numbers * float(total) < factor * terms)[:, 0]


def loads(terms: torch.Tensor, owners: torch.Tensor, n_seeds: int) -> torch.Tensor:
    """Return the sum of the terms of each seed's rows: shape (n_seeds,), int64."""
    out = torch.zeros(n_seeds, dtype=torch.int64, device=terms.device)
    return out.scatter_add_(0, owners.to(torch.int64), terms.to(torch.int64))
