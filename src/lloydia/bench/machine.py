"""What machine this is, and where its results stay: one folder a processor, one line a row."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lloydia.version import __version__

__all__ = ["PACKAGES", "RESULTS", "cpu_name", "facts", "keep", "load", "shelf"]

RESULTS = Path("benchmarks/results")
PACKAGES = (
    *("lloydia", "numpy", "numba", "scipy", "scikit-learn"),
    *("scikit-learn-intelex", "faiss-cpu", "superkmeans", "mlpack"),
    *("torch", "triton", "flash-kmeans", "numba-cuda"),
)


def cpu_name() -> str:
    """Return the processor's name as the operating system gives it."""
    if platform.system() == "Darwin":
        query = ["sysctl", "-n", "machdep.cpu.brand_string"]
        with suppress(OSError, subprocess.CalledProcessError):  # a sandbox may forbid it
            return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def facts() -> dict[str, object]:
    """Return what a figure cannot be read without: processor, cores, versions and the date."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name))},
        "lloydia": __version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def load() -> float | None:
    """Return the load that others put on this machine, and say so if it spoils the figures."""
    if not hasattr(os, "getloadavg"):
        return None
    busy = round(os.getloadavg()[0], 2)
    if busy > 0.25 * (os.cpu_count() or 1):
        warnings.warn(f"the machine is busy (load {busy}): times will be high", stacklevel=2)
    return busy


def shelf(results: Path, processor: str | None = None) -> Path:
    """Return the folder of a processor or GPU, this processor's by default, in `results`."""
    return results / re.sub(r"[^a-z0-9]+", "-", (processor or cpu_name()).lower()).strip("-")


def keep(name: str, rows: Sequence[Mapping[str, Any]], results: Path = RESULTS) -> Path:
    """Append one JSON line a row to ``name.jsonl`` of where they ran, and return its path."""
    path = shelf(results, rows[0].get("device")) / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = facts()
    lines = "".join(json.dumps({**row, **machine}) + "\n" for row in rows)
    with path.open("a", encoding="utf-8") as file:
        file.write(lines)
    return path


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
