"""The tables of a run on a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lloydia.bench.sheets import Row, Sheet, by_case, milliseconds, remarks

__all__ = ["device_sheets"]

Cases = dict[str, list[Row]]
ITERATION = "One iteration"
SHORT = 48  # letters of a kernel's name
FEWEST = 0.01  # share of the time of kernels that are listed
FEW_ROUNDS = 5


def device_sheets(rows: list[Row]) -> list[Sheet]:
    """Return the tables of one run."""
    iterations, fits = by_case(rows, "iterations"), by_case(rows, "fits")
    profiles = by_case(rows, "profile")
    found = []
    if iterations:
        found.append(_timed(ITERATION, iterations, _iterations_notes()))
        if twins := {name: case for name, case in iterations.items() if _twin(name, iterations)}:
            found.append(_twins(twins, iterations))
    if fits:
        found.append(_timed("Whole fits", fits, _fits_notes()))
    if iterations:
        found.append(_wrong(iterations))
    if profiles:
        found.append(_profiles(profiles))
    return found


def _timed(title: str, cases: Cases, notes: list[str]) -> Sheet:
    """Return a table of everyone's time and ratio, with what bounds ours."""
    peers = _peers(cases)
    heads = ["case", "iterations", "Lloydia, ms"]
    for peer in peers:
        heads += [f"{peer}, ms", "ratio"]
    floors = ["floor, ms", "Lloydia / floor"] if title == ITERATION else []
    heads += [*floors, "re-checked"]
    lines = []
    for name, (own, *others) in cases.items():
        by_name = {row["peer"]: row for row in others}
        line = [name, str(own.get("n_iter") or ""), milliseconds(own)]
        for peer in peers:
            line += _cells(by_name.get(peer))
        if floors:
            above = f"{own['ms'] / own['floor_ms']:.1f}" if "ms" in own else ""
            line += [f"{own['floor_ms']:.3g}", above]
        lines.append([*line, f"{own['rechecked']:.2%}" if "rechecked" in own else ""])
    return Sheet(title, heads, lines, notes + _occasions(cases) + remarks(cases))


def _occasions(cases: Cases) -> list[str]:
    """Say in which run each case was measured, and which figures are of few rounds."""
    runs: dict[str, list[str]] = {}
    for name, rows in cases.items():
        runs.setdefault(rows[0]["run"], []).append(name)
    few = [
        f"{name}, {row['peer']}: {row['rounds']}"
        for name, rows in cases.items()
        for row in rows
        if row.get("rounds", FEW_ROUNDS) < FEW_ROUNDS
    ]
    notes = [f"run of {run}: {'; '.join(names)}." for run, names in runs.items()]
    return notes + ([f"fewer than {FEW_ROUNDS} rounds: {'; '.join(few)}."] if few else [])


def _cells(row: Row | None) -> list[str]:
    if row is None:
        return ["", ""]
    if "ratio" not in row:
        status = row["status"]
        return ["-" if status in ("unsupported", "not installed") else status, ""]
    low, high = row["ratio_quartiles"]
    return [milliseconds(row), f"{row['ratio']:.2f} ({low:.2f}-{high:.2f})"]


def _iterations_notes() -> list[str]:
    return [
        "A figure is the time of a whole run over its number of iterations, with the work that is "
        "done once per fit.  A ratio is the library's time over Lloydia's, with its quartiles over "
        "the rounds.",
        "The floor is the larger of two times: that of 2 n d k operations at the rate of a "
        "half-precision product, and that of reading X and writing labels once.  A library that "
        "skips distances can be faster.  Re-checked are the rows whose scores were too close to "
        "decide, of all rows of all iterations.",
    ]


def _fits_notes() -> list[str]:
    return [
        "Lloydia fits to tol = 1e-4.  The other libraries do as many iterations from the same "
        "start.  Lloydia CPU does the same fit, with the same result to the last bit."
    ]


def _twin(name: str, iterations: Cases) -> Row | None:
    """Return the row of a case in float64, if it is of the same run."""
    found = iterations.get(f"{name},f64")
    return found[0] if found and found[0]["run"] == iterations[name][0]["run"] else None


def _twins(twins: Cases, iterations: Cases) -> Sheet:
    lines = []
    for name, (own, *_) in twins.items():
        twin = iterations[f"{name},f64"][0]
        if "ms" in own and "ms" in twin:
            ratio = f"{twin['ms'] / own['ms']:.2f}"
            lines.append([name, milliseconds(own), milliseconds(twin), ratio])
    heads = ("case", "float32, ms", "float64, ms", "float64 / float32")
    return Sheet("Lloydia's float64 compared with its float32", heads, lines)


def _wrong(cases: Cases) -> Sheet:
    peers = ["Lloydia", *_peers(cases)]
    lines = []
    for name, found in cases.items():
        by_name = {row["peer"]: row for row in found}
        labels = found[0]["n"] * found[0]["batch"]
        cells = [_share(by_name.get(peer), labels) for peer in peers]
        lines.append([name, f"{labels:,}", *cells])
    notes = [
        "A label is wrong if another centre is nearer by the float64 distance.  All libraries use "
        "the same centres.  For float16 the rounded rows and centres count."
    ]
    return Sheet("Wrong labels", ("case", "labels", *peers), lines, notes + _occasions(cases))


def _share(row: Row | None, labels: int) -> str:
    if row is None or row.get("wrong") is None:
        return "-"
    return f"{row['wrong']:,} ({row['wrong'] / labels:.2g})" if row["wrong"] else "0"


def _profiles(cases: Cases) -> Sheet:
    heads = ("case", "library", "kernel", "calls", "µs", "µs a call", "share", "TFLOP/s", "of gemm")
    lines = []
    for name, rows in cases.items():
        for peer in dict.fromkeys(row["peer"] for row in rows):
            own = [row for row in rows if row["peer"] == peer]
            lines += [_kernel(name, row) for row in own if row["share"] >= FEWEST]
            calls = sum(row["calls"] for row in own)
            us = sum(row["us"] for row in own)
            line = [name, peer, f"all; busy {own[0]['busy']:.0%} of {own[0]['ms_whole']:.3f} ms"]
            lines.append([*line, str(calls), f"{us:,.0f}", "", "", "", ""])
    notes = [
        "The table has the kernels of at least 1 % of the time of a run of ten iterations, by "
        "PyTorch's profiler.  Busy is the time in kernels over the time of a run without the "
        "profiler, since the profiler slows some runs down.  The rest are gaps.",
        "TFLOP/s counts 2 n d k operations per call of an assignment kernel.  The last column is "
        "the share of the rate of an 8192 x 8192 x 8192 product in half precision, in the same "
        "run.",
    ]
    return Sheet("Kernels", heads, lines, notes + _occasions(cases))


def _kernel(case: str, row: Row) -> list[str]:
    return [
        *(case, row["peer"], row["kernel"][:SHORT], str(row["calls"])),
        *(f"{row['us']:,.0f}", f"{row['us'] / row['calls']:,.1f}", f"{row['share']:.1%}"),
        f"{row['tflops']:.0f}" if "tflops" in row else "",
        f"{row['of_gemm']:.0%}" if "of_gemm" in row else "",
    ]


def _peers(cases: Cases) -> Sequence[Any]:
    """Return the names of all contenders but ours, in their order."""
    return list(dict.fromkeys(row["peer"] for rows in cases.values() for row in rows[1:]))
