"""The benchmark on a device, with tensors on the CPU in its place."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from lloydia.bench.cases import named  # noqa: E402
from lloydia.bench.device import cases, clock, contenders, judge, run  # noqa: E402
from lloydia.bench.device.cases import DeviceCase  # noqa: E402
from lloydia.bench.device.contest import QUICK  # noqa: E402
from lloydia.bench.device.profile import kernels, shares  # noqa: E402
from lloydia.bench.judge import Refused  # noqa: E402
from lloydia.bench.machine import keep  # noqa: E402
from lloydia.bench.peers import Fitted  # noqa: E402
from lloydia.bench.report import newest, write  # noqa: E402
from lloydia.bench.sheets import sheets  # noqa: E402
from lloydia.exact import distance  # noqa: E402

MODES = ("iterations", "fits")
TINY = DeviceCase("tiny", 2_000, 3, 5, "mixture", modes=MODES)


class Wrong(contenders.PyTorch):
    """Labels, and so centres, one off."""

    name = "wrong"

    def fit(self, X, task):
        found = super().fit(X, task)
        return Fitted(found.centers * 1.5, found.n_iter, (found.labels + 1) % task.k)


class Lying(contenders.Ours):
    def fit(self, X, task):
        found = super().fit(X, task)
        labels = found.labels.copy()
        labels[7] = (labels[7] + 1) % task.k
        return replace(found, labels=labels)


class Forgetful(contenders.Ours):
    """Other labels from one fit on, in the memory of the first one's."""

    def __init__(self, last):
        self.last, self.found = last, []

    def fit(self, X, task):
        self.found.append(super().fit(X, task))
        if len(self.found) > self.last:
            self.found[0].labels[:] += 1
            return replace(self.found[-1], labels=self.found[0].labels)
        return self.found[-1]


class Broken(contenders.PyTorch):
    name = "broken"

    def fit(self, X, task):
        raise ArithmeticError("a reason")


class Missing(contenders.PyTorch):
    name = "missing"
    package = "no-such-package-as-this"


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.setattr(clock, "LARGE", 1 << 12)
    monkeypatch.setattr(clock, "ORDER", 32)

    def measure(*others, case=TINY, modes=("iterations",), ours=None):
        sizes = replace(QUICK, rounds=2, turn=0.0)
        every = [ours or contenders.Ours(), *others]
        told = []
        found = run.run([case], modes, every, device="cpu", patience=sizes, step=told.append)
        rows = [row for some in found for row in some]
        assert told
        return rows

    return measure


def by_peer(rows):
    return {row["peer"]: row for row in rows}


def test_a_right_side_gets_a_time_and_a_wrong_one_none(measure):
    others = (contenders.PyTorch(), Wrong(), Broken(), Missing())
    rows = by_peer(measure(*others))
    assert [row["status"] for row in rows.values()] == [
        *("ok", "ok", "differs", "failed", "not installed")
    ]
    ours = rows["Lloydia"]
    checked = "all labels, inertia, last update, every bit of the CPU engine's"
    assert ours["checked"] == checked
    assert ours["wrong"] == rows["PyTorch"]["wrong"] == 0
    assert ours["ms"] == pytest.approx(ours["ms_whole"] / ours["n_iter"])
    assert rows["PyTorch"]["n_iter"] == ours["n_iter"] == 10
    assert rows["PyTorch"]["inertia_ratio"] == pytest.approx(1)
    assert {"ratio", "ratio_quartiles", "rounds"} <= rows["PyTorch"].keys()
    assert rows["wrong"]["wrong"] == TINY.n
    assert "times Lloydia's" in rows["wrong"]["reason"]
    assert "ms" not in rows["wrong"]
    assert rows["broken"]["reason"] == "ArithmeticError: a reason"


def test_ours_is_judged_first_and_then_nobody_has_a_time(measure):
    rows = by_peer(measure(contenders.PyTorch(), ours=Lying()))
    assert rows["Lloydia"]["status"] == "differs"
    assert "labels" in rows["Lloydia"]["reason"]
    assert "ms" not in rows["PyTorch"]


@pytest.mark.parametrize("mode", MODES)
# The second is that before the last update.
@pytest.mark.parametrize("last", [2, 3])
def test_ours_is_the_same_each_time(measure, mode, last):
    rows = by_peer(measure(contenders.PyTorch(), modes=(mode,), ours=Forgetful(last)))
    assert rows["Lloydia"]["status"] == "differs"
    assert rows["Lloydia"]["reason"] == "its labels_ differs from its first fit's"


def test_fits_have_the_cpu_engine_beside_them(measure):
    rows = by_peer(measure(contenders.OursOnCPU(), modes=("fits",)))
    assert rows["Lloydia CPU"]["checked"] == "every bit is ours"
    assert rows["Lloydia CPU"]["n_iter"] == rows["Lloydia"]["n_iter"] > 10
    assert rows["Lloydia CPU"]["ratio"] > 0


def test_a_batch(measure):
    rows = by_peer(measure(contenders.PyTorch(), case=replace(TINY, batch=3)))
    assert rows["Lloydia"]["checked"] == "all labels, last update, every bit of the CPU engine's"
    assert rows["PyTorch"]["inertia_ratio"] == pytest.approx(1)
    assert rows["PyTorch"]["wrong"] == 0


def test_half_precision_has_wrong_labels_of_its_own_rows_only():
    case = replace(TINY, kind="offset", k=20)
    X = cases.make(case, "cpu")
    start = cases.start(case, X).half()
    labels = judge.nearest(X.half(), start)
    assert judge.wrong_labels(X.half(), start, labels) == 0
    assert judge.wrong_labels(X, start.float(), labels) > 0


@pytest.mark.parametrize("case", cases.table(), ids=lambda case: case.name)
def test_every_case_has_its_rows_and_start(case):
    small = replace(case, n=3_000, batch=min(case.batch, 2), k=min(case.k, 100))
    X = cases.make(small, "cpu")
    assert X.shape == ((2,) if small.batch > 1 else ()) + (3_000, small.d)
    assert X.dtype == getattr(torch, small.dtype)
    assert torch.equal(X, cases.make(small, "cpu"))
    assert cases.start(small, X).shape[-2:] == (small.k, small.d)
    assert X.isfinite().all()


def test_the_cases_of_a_mode():
    profiled = cases.choose(None, ["profile"])
    assert profiled == cases.choose(None, ["iterations"])
    fitted = {case.name for case in cases.choose(None, ["fits"])}
    assert "256,2,16" in fitted
    assert "offset" in {case.name for case in profiled} - fitted
    twins = [case for case in cases.table() if case.name.endswith(",f64")]
    assert all(case.dtype == "float64" for case in twins)
    with pytest.raises(ValueError, match="There is no case 'no'"):
        named(cases.table(), ["no"], MODES)


def test_nearest_is_canonical():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (500, 4)).astype(np.float32)  # many ties
    centers = rng.integers(0, 3, (20, 4)).astype(np.float32)
    labels, D = distance.nearest(X, centers)
    tensors = torch.from_numpy(X), torch.from_numpy(centers)
    ours = torch.from_numpy(labels).long()
    assert torch.equal(judge.nearest(*tensors), ours)
    assert judge.wrong_labels(*tensors, ours) == 0
    assert judge.wrong_labels(*tensors, (ours + 1) % 20) == len(X)
    assert judge.inertia_of(*tensors) == judge.inertia_of(*tensors, ours) == D.sum()


def test_what_is_wrong_is_refused():
    X, centers = cases.make(TINY, "cpu"), cases.make(replace(TINY, n=5, seed=1), "cpu")
    labels = judge.nearest(X, centers)
    means = torch.stack([X[labels == j].double().mean(0).float() for j in range(5)])
    assert judge.judge_update(X, labels, means)
    with pytest.raises(Refused, match="means"):
        judge.judge_update(X, labels, means * (1 + 1e-5))
    assert not judge.judge_update(X, labels.clamp(max=3), means)
    with pytest.raises(Refused, match="inertia"):
        judge.judge_inertia(X, centers, labels, judge.inertia_of(X, centers) * 1.0001)
    with pytest.raises(Refused, match="finite"):
        judge.inertia_of(X, centers * torch.nan)


def test_blocks_do_not_matter(monkeypatch):
    X, centers = cases.make(TINY, "cpu"), cases.make(replace(TINY, n=5, seed=1), "cpu")
    labels = (judge.nearest(X, centers) + (torch.arange(len(X)) % 7 == 0)) % 5
    whole = judge.wrong_labels(X, centers, labels)
    monkeypatch.setattr(judge, "NUMBERS", 500)
    assert judge.wrong_labels(X, centers, labels) == whole == -(-TINY.n // 7)


@pytest.mark.slow
def test_the_report(measure, tmp_path, monkeypatch):
    others = (contenders.PyTorch(), Wrong(), contenders.OursOnCPU())
    modes = (*MODES, "profile")
    monkeypatch.setattr("lloydia.bench.device.profile.PROFILED", ("PyTorch",))
    rows = measure(*others, modes=modes)
    rows += measure(case=replace(TINY, name="tiny,f64", dtype="float64"))
    rows = [{**row, "device": "A GPU", "run": "now"} for row in rows]
    assert [sheet.title for sheet in sheets(rows)] == [
        *("One iteration", "Lloydia's float64 compared with its float32", "Whole fits"),
        *("Wrong labels", "Kernels"),
    ]
    later = [{**row, "run": "later"} if "f64" in row["case"] else row for row in rows]
    assert not any("float64" in sheet.title for sheet in sheets(later))
    path = keep("peers", json.loads(json.dumps(rows)), tmp_path)
    assert path == tmp_path / "a-gpu" / "peers.jsonl"
    markdown, *pictures = write(path, tmp_path / "report")
    text = markdown.read_text()
    assert text.startswith("# A GPU\n")
    assert "aten::addmm" in text
    assert "| tiny | 2,000 | 0 | 0 | 2,000 (1) |" in text
    assert text.count("- run of now: tiny; tiny,f64.") == 2
    assert "- fewer than 5 rounds: tiny, Lloydia: 2; tiny, PyTorch: 2; tiny,f64, L" in text
    assert len(pictures) == 2


def test_each_mode_of_a_device_has_its_newest_run(tmp_path):
    path = tmp_path / "peers.jsonl"
    runs = [("1", "fits"), ("1", "iterations"), ("2", "iterations")]
    rows = [{"case": "c", "mode": mode, "run": when, "device": "A GPU"} for when, mode in runs]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [(row["run"], row["mode"]) for row in newest(path)] == [runs[0], runs[2]]


def test_what_does_not_fit_is_said(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (10, 20))
    with pytest.raises(MemoryError, match="The case tiny needs about"):
        cases.make(TINY, "cuda")


def test_kernels_are_counted():
    X = torch.ones((50, 50))
    calls, us = kernels(lambda: [X @ X for _ in range(3)], "cpu")["aten::mm"]
    assert calls == 3
    assert us > 0


def test_kernels_that_begin_early_wait():
    # The second and the third begin while the first runs; then nothing does; the last has its own.
    ranges = [(0.0, 10.0), (8.0, 13.0), (9.0, 14.5), (20.0, 21.0)]
    assert shares(ranges) == [10.0, 3.0, 1.5, 1.0]
    assert shares(ranges[::-1]) == [1.0, 1.5, 3.0, 10.0]
    assert shares([]) == []


def test_a_side_that_is_not_there():
    with pytest.raises(ValueError, match="There is no library 'flash'"):
        contenders.choose(["flash"])
    assert [contender.name for contender in contenders.choose(["PyTorch"])] == [
        "Lloydia",
        "PyTorch",
    ]
