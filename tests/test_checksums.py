"""Every fit in the table of examples/checksums.py has the bits that were written down."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_every_fit_has_the_bits_written_down(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE.parent / "examples"))
    from checksums import cases, fit

    lines = (HERE / "checksums.txt").read_text().splitlines()
    written = {name: sha for sha, name in (line.split(" ", 1) for line in lines)}
    found = {case.name: fit(case, "cpu") for case in cases()}
    sys.modules.pop("checksums")
    differ = [name for name in written if found.get(name) != written[name]]
    assert found.keys() == written.keys()
    assert not differ
