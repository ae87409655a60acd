"""The cases on a device: their shapes from ``cases.toml``, their rows made where they are used."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
import torch

from lloydia.bench import cases
from lloydia.bench.cases import Case

__all__ = ["MODES", "DeviceCase", "choose", "make", "start", "table"]

MODES = ("iterations", "fits", "profile")
BLOCK = 1 << 20
COPIES = 4  # of X that must fit


@dataclass(frozen=True)
class DeviceCase(Case):
    """A case of several data sets of one shape; its iterations are those of one whole run."""

    iterations: Sequence[int] = (0, 10)
    batch: int = 1


def table() -> list[DeviceCase]:
    """Return all cases, in the order of ``cases.toml``; a twin follows its case."""
    text = files("lloydia.bench.device").joinpath("cases.toml").read_text(encoding="utf-8")
    found: list[DeviceCase] = []
    for fields in tomllib.loads(text)["case"]:
        twin = fields.pop("twin", False)
        case = DeviceCase(**fields)
        found.append(case)
        if twin:
            name = f"{case.name},f64"
            found.append(replace(case, name=name, dtype="float64", modes=("iterations",)))
    return found


def choose(names: Sequence[str] | None, modes: Sequence[str]) -> list[DeviceCase]:
    """Return the cases that have one of the modes, or those named; iterations have a profile."""
    have = ["iterations" if mode == "profile" else mode for mode in modes]
    return cases.named(table(), names, have)


def make(case: DeviceCase, device: str) -> torch.Tensor:
    """Return X on the device: shape (n, d), or (batch, n, d) for a batch.

    Raises
    ------
    MemoryError
        If the case and what the contenders make of it do not fit on the device.
    """
    needed = COPIES * case.batch * case.n * case.d * np.dtype(case.dtype).itemsize
    if device.startswith("cuda") and needed > (free := torch.cuda.mem_get_info(device)[0]):
        raise MemoryError(
            f"The case {case.name} needs about {needed / 1e9:.1f} GB of the GPU's memory, and "
            f"{free / 1e9:.1f} GB are free: choose others with --cases, or --quick."
        )
    generator = torch.Generator(device=device).manual_seed(case.seed)
    dtype = getattr(torch, case.dtype)
    X = torch.empty((case.batch, case.n, case.d), dtype=dtype, device=device)
    for member in X:
        KINDS[case.kind](case, member, generator)
    return X if case.batch > 1 else X[0]


def start(case: DeviceCase, X: torch.Tensor) -> torch.Tensor:
    """Return the start of all contenders, as :func:`lloydia.bench.cases.start` does for rows."""
    rng = np.random.default_rng(case.seed + 2)
    starts = []
    for member in X.reshape(case.batch, case.n, case.d):
        some = rng.choice(case.n, min(case.n, 8 * case.k), replace=False)
        rows = member[torch.from_numpy(some).to(X.device)].cpu().numpy()
        starts.append(torch.from_numpy(cases.start(case, rows)))
    found = torch.stack(starts).to(X.device)
    return found if case.batch > 1 else found[0]


Maker = Callable[[DeviceCase, torch.Tensor, torch.Generator], None]


def _normal(like: torch.Tensor, rows: int, generator: torch.Generator) -> torch.Tensor:
    shape = (rows, like.shape[1])
    return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)


def _mixture(case: DeviceCase, X: torch.Tensor, generator: torch.Generator) -> None:
    centers = 4 / np.sqrt(case.d) * _normal(X, case.k, generator)
    for block in X.split(BLOCK):
        own = torch.randint(case.k, (len(block),), generator=generator, device=X.device)
        torch.add(_normal(X, len(block), generator), centers[own], out=block)


def _pixels(case: DeviceCase, X: torch.Tensor, generator: torch.Generator) -> None:
    photos = [cases.photo(name).reshape(-1, 3) for name in cases.PHOTOS]
    colors = torch.from_numpy(np.concatenate(photos)).to(X)
    for i, block in enumerate(X.split(BLOCK)):
        rows = torch.arange(i * BLOCK, i * BLOCK + len(block), device=X.device) % len(colors)
        noise = (6 * _normal(X, len(block), generator)).round()
        torch.clamp(noise + colors[rows], 0, 255, out=block)


def _offset(case: DeviceCase, X: torch.Tensor, generator: torch.Generator) -> None:
    X.normal_(100, 1, generator=generator)


def _places(case: DeviceCase, X: torch.Tensor, generator: torch.Generator) -> None:
    X.uniform_(-1, 1, generator=generator)
    # By atan2: MKL's asin has been seen to give other bits the first time in a process.
    height = X[:, 0].clone()
    torch.atan2(height, ((1 - height) * (1 + height)).sqrt(), out=height)
    X[:, 0] = height.rad2deg_()
    X[:, 1].mul_(180)


def _directions(case: DeviceCase, X: torch.Tensor, generator: torch.Generator) -> None:
    X.normal_(generator=generator)
    X.div_(X.norm(dim=1, keepdim=True))


KINDS: dict[str, Any] = {
    "mixture": _mixture,
    "pixels": _pixels,
    "offset": _offset,
    "places": _places,
    "directions": _directions,
}
