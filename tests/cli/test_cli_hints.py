"""What `lloydia fit` says beside its result: a column that decides alone, and a faster start."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.cli import method as method_of
from lloydia.cli.method import Method
from lloydia.progress.stages import steps

HINT = (
    "lloydia: k-means++ takes long to choose {} centres; --init 'k-means||' is faster here, and "
    "chooses other ones.\n"
)
WARNING = (
    "lloydia: warning: {}: column 2{} has 99.9 % of the variance of all columns, so it decides the "
    "clusters almost alone: divide each column by its standard deviation first, or leave it out "
    "with --columns.\n"
)


@pytest.fixture
def people(folder):
    """Ages, and incomes in another unit, as people.csv with a header, and as people.npy."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.uniform(18, 90, 200), rng.uniform(1e4, 1e5, 200)], axis=1)
    np.save("people.npy", X)
    np.savetxt("people.csv", X, delimiter=",", header="age,income", comments="", fmt="%.17g")
    return X


def test_a_column_that_decides_alone(run, people):
    assert run("fit", "people.csv", "-k", 3).err == WARNING.format("people.csv", " ('income')")


@pytest.mark.parametrize("memory", ["1TB", "451MB"])
def test_a_column_that_decides_alone_in_blocks(run, people, memory):
    ran = run("fit", "people.npy", "-k", 3, "--memory", memory)
    assert ran.status == 0, ran.err
    assert ran.err.count("\n") == 2, "the plan, and the warning once"
    assert ran.err.endswith(WARNING.format("people.npy", ""))


@pytest.mark.parametrize("columns", ["age", "income"])
def test_one_column_alone_is_not_warned_of(run, people, columns):
    assert run("fit", "people.csv", "-k", 3, "--columns", columns).err == ""


def test_columns_of_one_scale_are_not_warned_of(run, people):
    np.save("scaled.npy", people / people.std(axis=0))
    assert run("fit", "scaled.npy", "-k", 3).err == ""


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("options", "n", "k", "whole", "seconds", "said"),
    [
        ({}, 400_000, 1000, True, 0.01, True),
        ({"device": "cpu"}, 400_000, 1000, True, 0.01, True),
        ({}, 400_000, 1000, True, 0.0019, False),
        ({}, 399_999, 1000, True, 1.0, False),
        ({}, 400, 8, False, 1.0, True),
        ({}, 400, 7, False, 1.0, False),
        ({"device": "cuda"}, 400_000, 1000, True, 1.0, False),
        ({"init": "farthest"}, 400_000, 1000, True, 1.0, False),
    ],
)
def test_a_faster_start_is_named_once(options, n, k, whole, seconds, said, capsys):
    clock = Clock()
    with Method(**options).naming_faster_start(n, k, whole, clock):
        for _ in steps("runs", range(2)):
            clock.now += 100.0
            for _ in steps("centers", range(k - 1), before=1):
                clock.now += seconds
            clock.now += 100.0
    assert capsys.readouterr().err == (HINT.format(f"{k:,}") if said else "")


def test_a_faster_start_is_named_by_the_command(run, blobs, monkeypatch):
    monkeypatch.setattr(method_of, "PATIENCE", 0.0)
    monkeypatch.setattr(method_of, "ROWS_A_CLUSTER", 1)
    monkeypatch.setattr("lloydia.backends.cpu.seeding.seeder.MAX_DISTANCES", 0)
    plain = run("fit", "blobs.csv", "-k", 9, "--init", "k-means||")
    assert plain.err == ""
    assert run("fit", "blobs.csv", "-k", 9).err == HINT.format(9)
