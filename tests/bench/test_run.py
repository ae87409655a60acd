from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fake_peers import TINY

from lloydia.bench.contest import Contest
from lloydia.bench.worker import Failed

# Each of these starts a process for each peer.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:the machine is busy")]


@pytest.mark.parametrize("mode", ["iterations", "fits"])
def test_a_right_peer_gets_a_time_and_a_wrong_one_none(measure, mode):
    rows = measure("right", "wrong", "sampling", mode=mode)
    own = next(iter(rows.values()))
    assert own["status"] == rows["right"]["status"] == "ok"
    assert own["checked"] == "whole fit"
    assert rows["right"]["inertia_ratio"] == 1.0
    assert rows["right"]["rounds"] == own["rounds"] == 2
    assert {"ms", "ratio"} <= rows["right"].keys()
    for name in ("wrong", "sampling"):
        assert rows[name]["status"] == "differs"
        assert "ms" not in rows[name]
        assert "ratio" not in rows[name]
    assert "times Lloydia's" in rows["wrong"]["reason"]
    assert "it left out rows" in rows["sampling"]["reason"]


def test_peers_that_cannot(measure):
    case = replace(TINY, dtype="float64")
    rows = measure("right", "broken", "crashing", "missing", "narrow", case=case)
    status = {name: row["status"] for name, row in rows.items()}
    assert status == {
        "Lloydia lloyd": "ok",
        "right": "ok",
        "broken": "failed",
        "crashing": "failed",
        "missing": "not installed",
        "narrow": "unsupported",
    }
    assert "ArithmeticError: a reason" in rows["broken"]["reason"]
    assert rows["narrow"]["reason"] == "float32 only"


def test_a_slow_peer_is_given_up(measure):
    rows = measure("slow", probe=2.0)
    assert rows["slow"]["status"] == "slow"
    assert rows["slow"]["reason"] == "warming up took over 2 s"
    assert "ms" not in rows["slow"]


def test_ours_is_judged_first_and_then_nobody_has_a_time(measure):
    rows = measure("lying", "right", ours=False)
    assert rows["lying"]["status"] == "differs"
    assert rows["lying"]["reason"] == "its inertia_ differs from the reference engine's"
    assert "ms" not in rows["lying"]
    assert "ms" not in rows["right"]


def test_where_ours_fails_on_the_way_nobody_has_a_time(measure, monkeypatch):
    timed = Contest._timed

    def fails(contest, entry, keep):
        if entry is contest.entries[0] and entry.turns:
            raise Failed("a reason")
        return timed(contest, entry, keep)

    monkeypatch.setattr(Contest, "_timed", fails)
    rows = measure("right")
    assert rows["Lloydia lloyd"]["status"] == "failed"
    assert "ms" not in rows["right"]
    assert "ratio" not in rows["right"]


def test_a_case_that_has_converged_has_no_iterations_to_time(measure):
    rows = measure("right", case=replace(TINY, k=1, iterations=(50, 60)))
    assert rows["Lloydia lloyd"]["status"] == "differs"
    assert "converged" in rows["Lloydia lloyd"]["reason"]
    assert "ms" not in rows["right"]


@pytest.mark.parametrize("affordable", [1e9, 0])
def test_every_algorithm_is_auto_to_the_last_bit(measure, monkeypatch, affordable):
    monkeypatch.setattr("lloydia.bench.judge.AFFORDABLE", affordable)
    rows = measure(mode="auto")
    checked = "whole fit" if affordable else "sample of labels, inertia, last update"
    assert rows["Lloydia auto"]["checked"] == checked
    assert len(rows) > 2
    for row in rows.values():
        assert row["status"] == "ok"
        assert row["memory"] > 0
        assert row["n_distances"] > 0
    assert rows["Lloydia hamerly"]["checked"] == "every bit is auto's"


def test_seeding(measure):
    rows = measure("right", mode="seeding", case=replace(TINY, modes=("seeding",)))
    assert rows["Lloydia k-means++"]["checked"] == "picks at a reduced size"
    assert rows["Lloydia k-means++"]["ms"] > 0


def test_defaults_have_no_start(measure):
    rows = measure("right", mode="fits", case=replace(TINY, defaults=True))
    assert rows["Lloydia auto"]["checked"] == "whole fit"
    assert rows["right"]["reason"] == "has not the same k-means++"


def test_times_that_make_no_sense_are_taken_again():
    """More iterations that took less time: someone else was at work."""
    taken = [4.0, 3.0, 2.0, 5.0]
    contest = object.__new__(Contest)
    worker = SimpleNamespace(fit=lambda *_, **__: {"seconds": taken.pop(0)})
    entry = SimpleNamespace(peer=SimpleNamespace(stops=True), worker=worker, turns=[])
    contest.mode, contest.data, contest.tol, contest.entries = "iterations", None, 0.0, [entry]
    contest.case, contest.patience = TINY, SimpleNamespace(turn=0.0, probe=1.0)
    assert contest._timed(entry, None) == {"base": {"seconds": 2.0}, "seconds": 5.0}
    taken += [3.0, 3.0, 4.0, 1.0, 2.0, 1.0]
    with pytest.raises(Failed, match=r"in 3 attempts, .* iterations took no longer than"):
        contest._timed(entry, None)
    assert taken == []
