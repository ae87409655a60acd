"""The pages of measurements: ``benchmarks/pages.py`` writes them from the kept JSON lines."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for sources."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write the pages, unless they are newer than all that they are made of."""
    folder = Path(app.srcdir, "benchmarks", "results")
    sources = [BENCHMARKS / "pages.py", *(BENCHMARKS / "results").rglob("*.jsonl")]
    pages = list(folder.glob("*.md"))
    newest = max(path.stat().st_mtime for path in sources)
    if not pages or min(path.stat().st_mtime for path in pages) < newest:
        runpy.run_path(str(BENCHMARKS / "pages.py"))["main"](folder)
