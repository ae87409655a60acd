"""Run the command line in this process, in an empty folder."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from lloydia.cli import main


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, capsys, monkeypatch):
    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


@pytest.fixture
def blobs(folder):
    """Three blobs of 40 rows in three columns, as blobs.csv with the header a,b,c."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.array([[0, 0, 0], [9, 9, 0], [0, 9, 9]]), 40, axis=0) + rng.normal(
        size=(120, 3)
    )
    np.savetxt(folder / "blobs.csv", X, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    return X
