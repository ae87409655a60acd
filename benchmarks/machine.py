"""What machine this is, and where its results stay: one folder a processor, one line a row."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def cpu_name() -> str:
    """Return the processor's name as the operating system gives it."""
    if platform.system() == "Darwin":
        query = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def facts() -> dict[str, object]:
    """Return what a figure cannot be read without: processor, cores, versions and the date."""
    packages = ("lloydia", "numpy", "numba", "scikit-learn")
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def load() -> float | None:
    """Return the load that others put on this machine, and say so if it spoils the figures."""
    if not hasattr(os, "getloadavg"):
        return None
    busy = round(os.getloadavg()[0], 2)
    if busy > 0.25 * (os.cpu_count() or 1):
        print(f"warning: the machine is busy (load {busy}); times will be high", file=sys.stderr)
    return busy


def keep(name: str, rows: list[dict[str, object]]) -> Path:
    """Append one JSON line a row to this processor's ``name.jsonl``, and return its path."""
    slug = re.sub(r"[^a-z0-9]+", "-", cpu_name().lower()).strip("-")
    path = RESULTS / slug / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps({**row, **facts()}) + "\n" for row in rows)
    with path.open("a", encoding="utf-8") as file:
        file.write(lines)
    return path
