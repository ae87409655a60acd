"""Every fit in the table of examples/checksums.py has the bits that were written down."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from lloydia.backends import numpy_first

HERE = Path(__file__).parent


@pytest.fixture
def checksums(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE.parent / "examples"))
    import checksums

    yield checksums
    sys.modules.pop("checksums")


def test_small_fits_are_those_of_compiled_kernels(checksums, monkeypatch):
    monkeypatch.setattr(numpy_first, "_budget", numpy_first.Budget(np.inf))
    monkeypatch.setattr(numpy_first, "NumpyFirst", None)
    assert checksums.fit(next(checksums.cases()), "cpu")


def test_every_fit_has_the_bits_written_down(checksums):
    lines = (HERE / "checksums.txt").read_text().splitlines()
    written = {name: sha for sha, name in (line.split(" ", 1) for line in lines)}
    found = {case.name: checksums.fit(case, "cpu") for case in checksums.cases()}
    differ = [name for name in written if found.get(name) != written[name]]
    assert found.keys() == written.keys()
    assert not differ
