"""A whole run on a device: its rates, then every case in every mode, as rows of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch

from lloydia.bench.contest import Patience
from lloydia.bench.device import cases, clock
from lloydia.bench.device.cases import DeviceCase
from lloydia.bench.device.contenders import Contender
from lloydia.bench.device.contest import Contest, Entry
from lloydia.bench.device.profile import profiles

__all__ = ["Row", "device_name", "run"]

Row = dict[str, Any]


def device_name(device: str) -> str:
    """Return the name of the GPU.

    Raises
    ------
    ValueError
        If PyTorch sees none.
    """
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise ValueError("--device cuda needs an NVIDIA GPU, and PyTorch sees none here.")
        return torch.cuda.get_device_name(device)
    return device


def run(
    chosen: Sequence[DeviceCase],
    modes: Sequence[str],
    contenders: list[Contender],
    *,
    device: str,
    patience: Patience,
    step: Callable[[str], None],
) -> Iterator[list[Row]]:
    """Measure every case in every mode that it has.

    Parameters
    ----------
    chosen : sequence of DeviceCase
    modes : sequence of {"iterations", "fits", "profile"}
        Every case that has iterations has a profile.
    contenders : list of Contender
        Ours first.
    device : str
        As PyTorch names it.
    patience : Patience
    step : callable
        Gets what is being done, for people.

    Yields
    ------
    list of dict
        The rows of one case in one mode: one a contender, ours first (of a profile, one a kernel).
    """
    facts: Row = {
        "run": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device_name(device),
    }
    step("the device's rates")
    rates = facts["rates"] = clock.rates(device)
    for case in chosen:
        for rows in _measured(case, modes, contenders, device, patience, rates, step):
            yield [{**_shape(case), **row, **facts} for row in rows]
        if device.startswith("cuda"):
            torch.cuda.empty_cache()


def _measured(
    case: DeviceCase,
    modes: Sequence[str],
    contenders: list[Contender],
    device: str,
    patience: Patience,
    rates: dict[str, float],
    step: Callable[[str], None],
) -> Iterator[list[Row]]:
    """Measure a case; at the end nothing holds its rows."""
    step(f"{case.name}: making the data")
    X = cases.make(case, device)
    start = cases.start(case, X)
    told = partial(_tell, step, case.name)
    for mode in modes:
        rows: list[Row] = []
        if mode == "profile" and "iterations" in case.modes:
            rows = profiles(case, contenders, X, start, rates, told)
        elif mode in case.modes:
            contest = Contest(case, mode, contenders, X, start, patience, told)
            contest.run()
            rows = results(contest, rates)
        if rows:
            yield [{**row, "mode": mode} for row in rows]


def _tell(step: Callable[[str], None], name: str, what: str) -> None:
    step(f"{name}: {what}")


def _shape(case: DeviceCase) -> Row:
    shape = {name: getattr(case, name) for name in ("n", "d", "k", "dtype", "kind", "batch")}
    return {"case": case.name, **shape}


def results(contest: Contest, rates: dict[str, float]) -> list[Row]:
    """Return a row for each entry."""
    shared = {}
    if contest.mode == "iterations":
        shared["floor_ms"] = 1e3 * clock.floor(contest.case, rates)
    ours = contest.entries[0]
    return [shared | _result(contest, entry, ours) for entry in contest.entries]


def _result(contest: Contest, entry: Entry, ours: Entry) -> Row:
    case, inertia = contest.case, entry.inertia
    row: Row = {
        "peer": entry.contender.name,
        "status": entry.status,
        "reason": entry.reason,
        "exact": entry.contender.exact,
        "same_start": True,
        "inertia": inertia,
        "inertia_ratio": inertia / ours.inertia if inertia is not None and ours.inertia else None,
        "checked": entry.checked,
        "n_iter": entry.n_iter,
        "wrong": entry.wrong,
        **entry.counts,
    }
    if "n_rechecked" in entry.counts:
        assigned = case.batch * case.n * max(1, entry.n_iter)
        row["rechecked"] = entry.counts["n_rechecked"] / assigned
    if entry.status != "ok" or not entry.seconds:
        return row
    seconds = contest.figures(entry)
    paired = min(len(seconds), len(ours.seconds))
    ratios = seconds[:paired] / contest.figures(ours)[:paired]
    return row | {
        "rounds": len(seconds),
        "ms": 1e3 * median(seconds),
        "ms_quartiles": (1e3 * np.quantile(seconds, [0.25, 0.75])).tolist(),
        "ms_whole": 1e3 * median(entry.seconds),
        "ratio": median(ratios),
        "ratio_quartiles": np.quantile(ratios, [0.25, 0.75]).tolist(),
    }
