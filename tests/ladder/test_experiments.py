"""The five systems' experiments at a tiny scale, what judges them, and the page they make."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lloydia import ladder
from lloydia.backends.cpu.runtime.pool import available_threads
from lloydia.ladder.experiments import (
    EXPERIMENTS,
    a,
    comparison,
    experiment,
    findings,
    kernels,
    report,
    run,
    seedings,
    summits,
    t,
    walk,
)
from lloydia.ladder.experiments.__main__ import main
from lloydia.ladder.experiments.b import SUGGESTED, VERSIONS
from lloydia.ladder.experiments.documents import LETTERS, document, seconds_in, wording
from lloydia.ladder.experiments.figures import name, seconds, speedup
from lloydia.ladder.experiments.lab import PEERS, Contender, Lab, blobs
from lloydia.ladder.experiments.measurement import Measurement, keep, of_machines, pick
from lloydia.ladder.experiments.oracle import TOLERANCE, Trial
from lloydia.ladder.experiments.t import (
    BLOCKS,
    GLOBAL,
    SEQUENTIAL,
    SHARED,
    SOLVERS,
    TEAMS,
    THREADED,
)
from lloydia.ladder.rung import About
from lloydia.stopping import Inertia, Labels

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "ladder.md"


# Of issue 6: they come with lloydia segment.
@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a folder with all experiments on the processor, at a tiny scale."""
    folder = tmp_path_factory.mktemp("results")
    told = []
    lab = Lab("cpu", 1e-4, told.append, most=8)
    made = [found for found, _ in run(EXPERIMENTS, lab, folder)]
    assert told
    assert {each.status for each in made} == {"ok"}
    assert all(each.seconds and each.device is None for each in made)
    return folder


@pytest.fixture
def page(tmp_path):
    """Return a copy of the page that the documentation has."""
    copy = tmp_path / "ladder.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("letter", EXPERIMENTS)
def test_every_experiment_has_a_baseline_a_peer_and_lloydia(results, letter):
    (found,) = of_machines(results).values()
    rungs = {each.rung for each in pick(found, experiment=letter)}
    assert {"r01_lloyd", "scikit-learn lloyd", "r30_engine_cpu"} <= rungs


@pytest.mark.slow
def test_the_walk_has_every_rung_of_the_processor(results):
    (found,) = of_machines(results).values()
    rungs = {each.rung for each in pick(found, experiment="walk")}
    assert rungs - set(PEERS) == {name for name in ladder.names() if ladder.where(name) == "cpu"}


@pytest.mark.slow
def test_the_page_is_rewritten_and_drawn(results, page):
    pytest.importorskip("matplotlib")
    first, *pictures = report.write(results, page)
    text = page.read_text(encoding="utf-8")
    assert first == page
    assert len(pictures) >= len(EXPERIMENTS)
    for picture in pictures:
        assert picture.stat().st_size > 10_000
        assert f"](ladder/{picture.name})" in text
    for word in ("| 01 lloyd |", "| Lloydia |", "| random points |", "scikit-learn elkan"):
        assert word in text


@pytest.mark.slow
def test_a_second_report_changes_nothing(results, page):
    pytest.importorskip("matplotlib")
    page.write_text(
        "Before\n<!-- ladder: A -->\nto be replaced\n<!-- end -->\nafter\n", encoding="utf-8"
    )
    report.write(results, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Before\n<!-- ladder: A -->\n#### Everything in document A")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "to be replaced" not in text
    report.write(results, page)
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.slow
def test_a_page_without_a_place_is_refused(results, page):
    page.write_text("# Nothing\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no place for tables"):
        report.write(results, page)
    page.write_text("<!-- ladder: Z -->\n<!-- end -->\n", encoding="utf-8")
    with pytest.raises(ValueError, match="There is no experiment 'Z'"):
        report.write(results, page)


def test_the_newest_measurement_counts(tmp_path):
    old = Measurement("A", "300 iterations", "r01_lloyd", "cpu", 100, 2, 5, "float32", seconds=2.0)
    for each in (old, replace(old, seconds=1.0), replace(old, n=200)):
        path = keep(each, tmp_path)
    (found,) = of_machines(tmp_path).values()
    assert [each.seconds for each in pick(found, n=100)] == [1.0]
    assert found[0].facts["cpu"]
    path.write_text('{"seconds": 1}\n')
    with pytest.raises(ValueError, match="line 1 is not a measurement"):
        of_machines(tmp_path)
    with pytest.raises(ValueError, match="has no measurement"):
        of_machines(tmp_path / "none")


# -- what is judged --------------------------------------------------------------------------


def _wrong_label(outcome, few):
    labels = outcome.labels.copy()
    labels[0] = (labels[0] + 1) % len(outcome.centers)
    return replace(outcome, labels=labels)


def _wrong_centre(outcome, few):
    centers = outcome.centers.copy()
    centers[0, 0] += 1e-6
    return replace(outcome, centers=centers)


def _wrong_end(outcome, few):
    return outcome if few else replace(outcome, centers=outcome.centers * 1.5)


def _right(outcome, few):
    return outcome


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_right, ""),
        (_wrong_label, "labels are wrong after 3"),
        (_wrong_centre, "centres are off by"),
        (_wrong_end, "its inertia is"),
    ],
)
def test_no_time_for_a_result_that_differs(monkeypatch, spoil, reason):
    sound = ladder.named("r00_reference").fit

    def fit(X, centers, *, rule, max_iter):
        return spoil(sound(X, centers, rule=rule, max_iter=max_iter), max_iter == 3)

    toy = SimpleNamespace(ABOUT=About("toy", "", "cpu"), fit=fit)
    monkeypatch.setattr(ladder, "named", lambda name: toy)
    X = blobs(300, 5, "float64")
    trial = Trial("A", "toy", X, X[:5], Labels(), 50)
    (found,) = Lab().measure(trial, [Contender("r00_toy")])
    assert found.status == ("differs" if reason else "ok")
    assert reason in found.reason
    assert (found.seconds is None) == bool(reason)


def test_a_rung_that_refuses_a_problem_is_skipped_with_its_reason(monkeypatch):
    def fit(X, centers, *, rule, max_iter):
        raise MemoryError("9 x 3 distances take 7.0 GiB.")

    toy = SimpleNamespace(ABOUT=About("toy", "", "cpu"), fit=fit)
    monkeypatch.setattr(ladder, "named", lambda name: toy)
    X = blobs(300, 5, "float64")
    (found,) = Lab().measure(Trial("A", "toy", X, X[:5], None, 5), [Contender("r00_toy")])
    assert (found.status, found.reason) == ("skipped", "9 x 3 distances take 7.0 GiB")


@pytest.mark.parametrize("rule", [Inertia(drop=1e-3), Labels()], ids=str)
def test_nothing_is_compiled_while_the_clock_runs(rule, monkeypatch):
    sound, asked = ladder.named("r00_reference").fit, []

    def fit(X, centers, *, rule, max_iter):
        asked.append(rule is not None and rule.needs_inertia)
        return sound(X, centers, rule=rule, max_iter=max_iter)

    toy = SimpleNamespace(ABOUT=About("toy", "", "cpu"), fit=fit)
    monkeypatch.setattr(ladder, "named", lambda name: toy)
    X = blobs(300, 5, "float64")
    (found,) = Lab().measure(Trial("A", "toy", X, X[:5], rule, 50), [Contender("r00_toy")])
    before, timed = asked[: -len(found.repetitions)], asked[-len(found.repetitions) :]
    assert len(timed) == 3
    assert set(before) >= set(timed)


# At first the third point lies in the middle between two centres, and it may stay with either.
reference = ladder.named("r00_reference").fit
TIED = np.array([[0.0], [1.0], [3.0], [5.0], [6.0], [20.0]])
TIED_START = np.array([[1.0], [5.0], [20.0]])


def _other_way(X, centers, *, rule, max_iter):
    """Return what Lloyd's method finds if ties go to the highest cluster."""
    found = reference(X, centers[::-1], rule=rule, max_iter=max_iter)
    labels = (len(centers) - 1 - found.labels).astype(np.int32)
    return replace(found, labels=labels, centers=found.centers[::-1])


def _late_error(X, centers, *, rule, max_iter):
    """Return a run whose last point changes its cluster after the first few iterations."""
    found = reference(X, centers, rule=rule, max_iter=max_iter)
    if max_iter <= 3:
        return found
    labels = found.labels.copy()
    labels[0] = 1
    return replace(found, labels=labels)


@pytest.mark.parametrize(
    ("fit", "figures", "reason"),
    [
        (reference, {"relabelled": 0, "apart": 0.0}, ""),
        (_other_way, {"parted": 1, "ties": 1, "relabelled": 1}, ""),
        (_late_error, {"relabelled": 1}, "1 of 6 labels are wrong after 4"),
    ],
    ids=["equal", "tie", "wrong"],
)
def test_a_whole_run_differs_by_ties_alone(fit, figures, reason, monkeypatch):
    def run(X, centers, *, rule, max_iter):
        # Two more iterations than it needs, so that a late error comes after the first few.
        found = fit(X, centers, rule=rule, max_iter=max_iter)
        return replace(found, n_iter=max(found.n_iter, 5) if rule else found.n_iter)

    toy = SimpleNamespace(ABOUT=About("toy", "", "cpu"), fit=run)
    monkeypatch.setattr(ladder, "named", lambda name: toy)
    trial = Trial("T", "toy", TIED, TIED_START, Labels(), 50, whole=True)
    (found,) = Lab().measure(trial, [Contender("r00_toy")])
    assert found.status == ("differs" if reason else "ok")
    assert reason in found.reason
    assert found.figures.items() >= figures.items()


def test_a_long_run_in_float32_is_not_traced(monkeypatch):
    monkeypatch.setattr("lloydia.ladder.experiments.lab.PATIENCE", -1.0)
    toy = SimpleNamespace(ABOUT=About("toy", "", "cpu"), fit=_late_error)
    monkeypatch.setattr(ladder, "named", lambda name: toy)
    X, start = TIED.astype("float32"), TIED_START.astype("float32")
    trial = Trial("T", "toy", X, start, Labels(), 50, whole=True)
    (found,) = Lab().measure(trial, [Contender("r00_toy")])
    assert (found.status, found.figures["relabelled"]) == ("ok", 1)
    assert "parted" not in found.figures


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("peer", PEERS)
def test_scikit_learn_is_compared_to_the_end(peer, dtype):
    X = blobs(300, 5, dtype)
    trial = Trial("T", "toy", X, X[:5], Labels(), 50, whole=True)
    (found,) = Lab().measure(trial, [Contender(peer, threads=1)])
    assert found.status == "ok"
    assert found.figures["relabelled"] == 0
    assert found.figures["apart"] <= TOLERANCE[dtype]


def test_float32_may_round_but_not_by_much():
    X = blobs(500, 8, "float32")
    trial = Trial("T", "toy", X, X[:8], Labels(), 50)
    sound = ladder.named("r00_reference").fit(X, X[:8], rule=None, max_iter=3)
    assert trial.oracle.strictly(sound)[1] == ""
    shifted = replace(sound, centers=sound.centers + np.float32(1e-2))
    assert "off by" in trial.oracle.strictly(shifted)[1]


def test_contenders_have_every_team_and_grid(monkeypatch):
    monkeypatch.setattr("lloydia.ladder.experiments.lab.available_threads", lambda: 6)
    lab = Lab("all", blocks=(64, 128))
    some = lab.contenders(cpu=("r04_threaded_lloyd",), cuda=("r12_atomics",), hosts=("r01_lloyd",))
    assert [(each.name[:3], each.threads, each.block) for each in some] == [
        *(("r01", None, None), ("r04", 2, None), ("r04", 4, None), ("r04", 6, None)),
        *(("r12", None, 64), ("r12", None, 128)),
    ]
    assert [each.name for each in Lab("cpu").contenders(cuda=("r12_atomics",))] == []


@pytest.mark.interpreter
def test_rungs_on_a_gpu_take_part_in_the_simulator(tmp_path):
    """B's alone, as the simulator is slow; in a process of its own, as it replaces numba.cuda."""
    pytest.importorskip("numba_cuda")
    program = (
        "import sys; sys.modules.update(cyclopts=None, rich=None)  # as on a bare machine\n"
        "from pathlib import Path; from lloydia.ladder.experiments import b, run\n"
        "from lloydia.ladder.experiments.lab import Lab\n"
        "b.SHAPES = b.SHAPES[2:3]\n"
        f"list(run(['B'], Lab('cuda', 1e-4, blocks=(32,), most=2), Path({str(tmp_path)!r})))"
    )
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    (path,) = tmp_path.glob("cuda-simulator/ladder/B.jsonl")
    rows = {row["rung"]: row for row in map(json.loads, path.read_text().splitlines())}
    assert {rung: row["status"] for rung, row in rows.items() if row["where"] == "cuda"} == {
        **dict.fromkeys((*VERSIONS, *SUGGESTED), "ok"),
        "r31_engine_cuda": "skipped",
    }
    assert rows["r15_all_on_gpu"]["block"] == 32
    assert rows["r10_naive"]["phases"]["kernels"] > 0
    figures = rows["r14_shared_centers"]["figures"]
    assert figures["bytes uploaded"] == 4 * 2 * 8
    assert figures["bytes downloaded"] == 32 * 4 + 8
    assert 0 < figures["shortest iteration"] <= figures["longest iteration"]
    assert rows["scikit-learn lloyd"]["where"] == "cpu"


@pytest.mark.parametrize("letter", ["C", "D"])
def test_beside_a_gpu_one_thread_runs_ten_iterations(letter, monkeypatch):
    """D's smallest image apart, whose 200 take no time."""
    pytest.importorskip("numba_cuda")
    asked = []

    def measure(self, trial, contenders, **options):
        asked.extend((each.name, trial.part, trial.max_iter) for each in contenders)
        return ()

    module = sys.modules[experiment(letter).run.__module__]
    monkeypatch.setattr(Lab, "measure", measure)
    monkeypatch.setattr("lloydia.ladder.experiments.kernels.measure", lambda *_: None)
    for maker in {"square", "pixels", "colors"} & vars(module).keys():
        monkeypatch.setattr(module, maker, lambda *_, **__: np.zeros((1, 2), np.float32))
    list(module.run(Lab("cuda")))
    one = ("r01_lloyd", "r53_scanning_means", "r60_sequential_sums")
    parts = ("convergence", "pictures", "sizes")
    asked = [each for each in asked if each[1] in parts]
    assert {most for rung, _, most in asked if rung in one} == {"C": {10}, "D": {10, 200}}[letter]
    longest = {most for rung, _, most in asked if rung not in one}
    assert longest == {"C": {10_000}, "D": {200}}[letter]


def test_experiments_run_without_the_command_line(tmp_path, monkeypatch, capsys):
    arguments = ["A", "--scale", "0.001", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["experiments", *arguments])
    main()
    assert "A 300 iterations: 01 lloyd at 100 x 2, k = 5, float32: " in capsys.readouterr().out
    assert list(tmp_path.glob("*/ladder/A.jsonl"))
    monkeypatch.setattr(sys, "argv", ["experiments", "E", *arguments[1:]])
    with pytest.raises(SystemExit):
        main()
    assert "There is no experiment 'E'" in capsys.readouterr().err


def test_a_page_can_be_made_of_what_has_no_time(tmp_path, page):
    pytest.importorskip("matplotlib")
    for letter in EXPERIMENTS:
        shape = ("cpu", 10, 2, 2, "float64")
        part = {"status": "differs", "reason": "it is wrong"}
        keep(Measurement(letter, "300 iterations", "r01_lloyd", *shape, **part), tmp_path)
    assert report.write(tmp_path, page) == [page]
    assert "01 lloyd: differs, it is wrong." in page.read_text(encoding="utf-8")


# -- what is said of it ----------------------------------------------------------------------


def _gpu_series(times):
    """Return T's series on a GPU: `times` gives the seconds of a rung, a block and a type."""
    told = {"device": "GPU", "n_iter": 9}
    for dtype in ("float64", "float32"):
        for rung in (*GLOBAL, *SHARED):
            for block in BLOCKS:
                shape = ("cuda", 1000, 2, 64, dtype)
                spent = times(rung, block, dtype)
                yield Measurement("T", "series", rung, *shape, block=block, seconds=spent, **told)
        for peer in PEERS:
            shape = ("cpu", 1000, 2, 64, dtype)
            yield Measurement("T", "series", peer, *shape, seconds=10.0, **told)


def _as_the_thesis_found(rung, block, dtype):
    order = ("hamerly", "elkan", "lloyd")
    if dtype == "float32":
        order = ("lloyd", "hamerly", "elkan")
    elif block == 1024:
        order = ("elkan", "hamerly", "lloyd")
    slower = 1 + 0.01 * next(i for i, solver in enumerate(order) if solver in rung)
    shared = 1.0 if rung in SHARED else {"float64": 1.5, "float32": 1.9}[dtype]
    if rung == "r20_chunked_elkan" and dtype == "float32":
        slower -= 0.001 * (block == 256)
        return slower * (1 + block / 1e6)
    return slower * shared * (1 + block / 5e4)


def _cpu_series(times):
    """Return T's series on a processor: `times` gives the seconds of a solver and of threads."""
    for dtype in ("float64", "float32"):
        shape = ("cpu", 1000, 2, 64, dtype)
        for team, rungs in ((None, SEQUENTIAL), *((team, THREADED) for team in TEAMS)):
            for solver, rung in zip(SOLVERS, rungs):
                spent = times(solver, team or 1)
                part = {"seconds": spent, "threads": team, "n_iter": 9}
                yield Measurement("T", "series", rung, *shape, **part)
        for peer, spent in zip(PEERS, (10.0, 9.0)):
            yield Measurement("T", "series", peer, *shape, seconds=spent)


def _as_the_thesis_found_on_threads(solver, team):
    return (68 + SOLVERS[::-1].index(solver)) / team


def test_findings_hold_or_do_not():
    table = findings.sheet(list(_gpu_series(_as_the_thesis_found)))
    assert {holds for *_, holds in table.lines} == {"yes"}
    assert len(table.lines) == 22
    table = findings.sheet(list(_gpu_series(lambda *what: 20 / _as_the_thesis_found(*what))))
    assert "yes" not in {holds for *_, holds in table.lines}
    assert findings.sheet([]).lines == []


def test_findings_on_threads_hold_or_do_not():
    table = findings.sheet(list(_cpu_series(_as_the_thesis_found_on_threads)))
    assert {holds for *_, holds in table.lines} == {"yes"}
    assert len(table.lines) == 18
    series = list(_cpu_series(lambda *what: 20 / _as_the_thesis_found_on_threads(*what)))
    verdicts = {told: holds for told, _, holds in findings.sheet(series).lines}
    assert verdicts["float32: 4 threads do not beat scikit-learn"] == "no"
    assert verdicts["float64: all OpenMP solvers beat sequential lloyd"] == "no"
    few = [each for each in series if each.threads in (None, 4)]
    lines = {told: line for told, *line in findings.sheet(few).lines}
    assert lines["float64: 8 threads beat scikit-learn"] == ["8 threads were not measured", ""]


def test_scikit_learn_is_compared_where_both_of_its_algorithms_have_a_time():
    large = [*_gpu_series(_as_the_thesis_found), *_cpu_series(_as_the_thesis_found_on_threads)]
    small = [replace(each, n=500, seconds=each.seconds / 8) for each in large]
    faster = [each for each in large if (each.rung, each.dtype) == (PEERS[0], "float32")]
    found = [*small, *(each for each in large if each not in faster)]
    lines = {told: line for told, *line in findings.sheet(found).lines}
    assert lines["float64: 12 threads beat scikit-learn"][0].startswith("lloyd 1.")
    assert lines["float32: 12 threads beat scikit-learn"][0].startswith("at n = 500: lloyd 1.")
    assert lines["float32: all OpenMP solvers beat sequential lloyd"][1] == "yes"
    assert {holds for _, holds in lines.values()} == {"yes"}


def test_every_finding_of_the_thesis_stands_in_its_table():
    found = [*_gpu_series(_as_the_thesis_found), *_cpu_series(_as_the_thesis_found_on_threads)]
    lines = {line[0]: line for line in comparison.sheet("T", {"here": found}).lines}
    asked = {told for told, *_ in findings.sheet(found).lines}
    entries = [each for each in document("T").entries if each.show == "finding"]
    assert {each.what for each in entries} == asked
    for each in entries:
        assert lines[f"{each.what} ({each.place})"][2].startswith("yes: ")


def test_equal_runs_are_counted():
    at = ("T", "series", "r01_lloyd", "cpu", 1000, 2, 64)
    runs = [({"relabelled": 0, "apart": 1e-13}), {"relabelled": 1, "apart": 0.1, "parted": 3}]
    found = [
        Measurement(*at, "float64", threads=place, seconds=1.0, figures=figures)
        for place, figures in enumerate(runs)
    ]
    assert wording.equality(found) == "1 of 2, 1 part at a tie"


def test_the_ends_of_whole_runs_are_counted():
    at = ("T", "series", "r01_lloyd", "cpu", 1000, 2, 64, "float32")
    ends = [
        {"relabelled": 0, "apart": 1e-5},
        {"relabelled": 0, "apart": 1e-5, "parted": 2, "ties": 1},  # and came together again
        {"relabelled": 3, "apart": 0.1, "parted": 5, "ties": 2},
        {"relabelled": 3, "apart": 0.1},
    ]
    found = [
        Measurement(*at, threads=place, seconds=1.0, figures=figures)
        for place, figures in enumerate(ends)
    ]
    wrong = {"status": "differs", "reason": "wrong", "figures": {"relabelled": 9, "apart": 1.0}}
    found.append(Measurement(*at, threads=9, **wrong))
    early = {"status": "differs", "reason": "wrong", "figures": {"error": 1.0}}  # no whole run
    found.append(Measurement(*at, threads=10, **early))
    sheet = next(each for each in t.sheets(found) if each.title.startswith("Whole runs"))
    ends = ["6", "2", "1 (by 2 points at most)", "1", "2"]
    assert sheet.lines == [["float32, within 1e-04", *ends]]


def test_one_picture_has_one_engine():
    pytest.importorskip("matplotlib")
    found = [*_gpu_series(_as_the_thesis_found), *_cpu_series(_as_the_thesis_found_on_threads)]
    for engine, spent in (("r30_engine_cpu", 0.5), ("r31_engine_cuda", 0.1)):
        found.append(replace(found[0], rung=engine, block=None, seconds=spent))
    figures = t.draw(found)
    for short, wanted in (("threads-float64", 0.5), ("blocks-float64", 0.1)):
        for ax in figures[short].axes:
            (line,) = [line for line in ax.lines if line.get_label().startswith("Lloydia")]
            assert list(line.get_ydata()) == [wanted]


def test_shared_memory_may_gain_more_than_the_thesis_found():
    def times(rung, block, dtype):
        return 1.0 if rung in SHARED else 5.0

    lines = findings.sheet(list(_gpu_series(times))).lines
    verdicts = [holds for told, _, holds in lines if "times as fast" in told]
    assert verdicts == ["more", "more"]


def test_the_largest_problems_are_summed_up():
    series = list(_gpu_series(_as_the_thesis_found))
    small = [replace(each, n=10, seconds=1e-3) for each in series]
    engine = replace(series[0], rung="r31_engine_cuda", block=None, seconds=0.1)
    short = replace(series[0], rung="r01_lloyd", max_iter=-1, seconds=1e-6)
    first, second = summits.sheet([*small, *series, engine, short]).lines
    assert first[0] == "T: 1,000 x 2, k = 64, float64"
    assert first[1] == "10.0 s / 9"
    assert first[2:4] == [
        "16 tree lloyd, blocks of 64: 1.53 s / 9 (6.53x)",
        "21 chunked hamerly, blocks of 64: 1.00 s / 9 (9.99x)",
    ]
    assert first[4] == "100 ms / 9 (10.0x)"
    assert second[4] == ""


@pytest.mark.parametrize("letter", LETTERS)
def test_every_entry_of_a_document_has_its_files(letter):
    entries = document(letter).entries
    # The package may be installed elsewhere than in src.
    source = Path(ladder.__file__).parents[2]
    for file in (file for each in entries for file in each.files):
        inside = file.removeprefix("src/")
        assert (source / inside if inside != file else ROOT / file).exists(), file
    assert {each.show for each in entries} <= wording.SHOWN.keys()
    for each in entries:
        assert pick([], **each.pick) == []
        assert set(each.pick) <= {field.name for field in fields(Measurement)}


def _timed(rung, n, spent, **more):
    shape = ("cpu", n, 2, 5, "float32")
    return Measurement("A", "300 iterations", rung, *shape, seconds=spent, **more)


def test_a_document_is_compared_line_by_line():
    one, trees = _timed("r01_lloyd", 100, 1e-3, n_iter=300), "r22_masked_trees"
    double = replace(one, part="300 iterations in float64", dtype="float64")
    found = [one, double, _timed(trees, 100, 2e-3, n_iter=300, block=256)]
    found.append(replace(found[2], block=1024, seconds=4e-3))
    sheet = comparison.sheet("A", {"here": found, "there": []})
    ours = ["ours, here", "ours, there"]
    assert sheet.heads == ["", "theirs", *ours, "same program?", "file", "command"]
    lines = {line[0]: line for line in sheet.lines}
    sequential = lines["C++, n = 100: T = 300 iterations, mean of 5 runs (tables 1 to 4)"]
    assert sequential[1:4] == ["540 µs", "1.00 ms", ""]
    assert sequential[5] == "[r01_lloyd](../src/lloydia/ladder/r01_lloyd.py)"
    number = int(sequential[4].removeprefix("note "))
    assert sheet.notes[number - 1].startswith(
        f"Note {number}: The document leaves the value of k out"
    )
    (order,) = (line for what, line in lines.items() if what.startswith("at n = 100 the GPU"))
    assert order[1:4] == [
        "C++ < CUDA 3 < CUDA 2 < CUDA",
        "01 lloyd 1.00 ms < 22 masked trees 2.00 ms",
        "",
    ]
    note = sheet.notes[int(order[4].removeprefix("note ")) - 1]
    assert "CUDA 3 is the slowest here" in note


def test_a_gain_is_over_the_program_that_the_document_compares_with():
    one = _timed("r53_scanning_means", 2_000, 6e-3, n_iter=10)
    one = replace(one, experiment="C", part="convergence", k=100)
    fast = replace(one, rung="r11_distance_matrix", block=256, n_iter=30)
    lines = {line[0]: line for line in comparison.sheet("C", {"here": [one, fast]}).lines}
    assert lines["speed-up, 2,000 points, 100 clusters (table 2)"][1:3] == ["15.76x", "3.00x"]
    assert lines["sequential program, 2,000 points, 100 clusters (table 1; code 1 to 3)"][2] == (
        "6.00 ms in 10 iterations"
    )
    found = {what: line[2] for what, line in lines.items() if what.startswith("finding: the ")}
    assert "yes: 3.00x" in found.values()  # the parallel program is faster
    alone = comparison.sheet("C", {"here": [fast]}).lines
    assert all(line[2] == "" for line in alone if line[0].startswith("speed-up"))


def test_a_shorter_run_is_scaled_to_the_document_s_iterations():
    shape = ("cpu", 10_000_000, 3, 7, "float32")
    told = {"n_iter": 10, "max_iter": 10, "seconds": 2.0}
    one = Measurement("D", "sizes", "r01_lloyd", *shape, **told)
    team = replace(one, rung="r60_sequential_sums", seconds=0.5)
    lines = {line[0]: line for line in comparison.sheet("D", {"here": [one, team]}).lines}
    (time,) = (line for what, line in lines.items() if "C++, 10,000,000 pixels, k = 7, 2" in what)
    assert time[1:3] == ["177 s", "40.0 s (10 iterations timed)"]
    (gain,) = (
        line for what, line in lines.items() if "OpenMP over C++, 10,000,000 pixels, k = 7" in what
    )
    assert gain[1:3] == ["2x", "4.00x"]


@pytest.mark.parametrize(
    ("gains", "wins", "unordered"),
    [
        ((2.0, 4.0, 3.0), "yes: 2.00x, 4.00x, 3.00x", "partly: 2.00x, 4.00x, 3.00x"),
        (
            (2.0, 4.0, 3.0, 2.0, 5.0),
            "yes: 2.00x, 4.00x, 3.00x, 2.00x, 5.00x",
            "yes: 2.00x, 4.00x, 3.00x, 2.00x, 5.00x",
        ),
        ((0.5, 2.0, 3.0), "partly: 0.50x, 2.00x, 3.00x", "no: 0.50x, 2.00x, 3.00x"),
        ((0.5, 0.25), "no: 0.50x, 0.25x", ""),
        ((), "", ""),
    ],
)
def test_findings_about_gains_have_a_verdict(gains, wins, unordered):
    base = [_timed("r01_lloyd", 100 * place, 1.0, n_iter=1) for place in range(len(gains))]
    found = [replace(each, seconds=1 / gain) for each, gain in zip(base, gains)]
    assert wording.wins(found, base) == wins
    assert wording.unordered(found, base) == unordered


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ({1: 0.5, 10: 0.9, 12: 1.0, 15: 2.0}, "between k = 10 and 12"),
        ({1: 0.5, 10: 0.9}, "faster up to k = 10"),
        ({1: 1.5, 10: 0.9}, "slower from k = 1"),
    ],
)
def test_where_two_meet(times, text):
    shape = ("cuda", 100, 3)
    told = {"n_iter": 1, "device": "GPU"}

    def made(rung, k, spent):
        return Measurement("D", "clusters", rung, *shape, k, "float32", seconds=spent, **told)

    found = [made("r25_cluster_arrays", k, spent) for k, spent in times.items()]
    base = [made("r64_float_sums", k, 1.0) for k in times]
    assert wording.crossing(found, base) == text
    assert wording.ends(found) == ", ".join(
        f"k = {k}: {seconds(times[k])}" for k in (1, max(times))
    )


def test_gains_are_of_a_phase_where_one_is_named():
    one = _timed("r10_naive", 100, 1.0, n_iter=10, block=64, phases={"kernels": 0.4, "host": 0.6})
    other = replace(one, seconds=0.9, phases={"kernels": 0.1, "host": 0.8})
    assert wording.gain([other], [one]) == "1.11x"
    assert wording.gain([other], [one], "kernels") == "4.00x"
    assert wording.gain([other], [replace(one, phases={})], "kernels") == ""
    assert wording.span([one, other], [one], "kernels") == "1.00x to 4.00x"
    assert wording.phase([other], "host") == "800 ms"
    assert wording.number([replace(one, figures={"bytes": 2048.0})], "bytes", "B") == "2,048 B"
    assert wording.number([one], "bytes", "B") == ""


def test_kernels_are_shown_beside_the_run_that_they_are_part_of():
    whole = _timed("r22_masked_trees", 100, 3e-2, n_iter=300, block=1024, device="GPU")
    alone = {"part": "kernels", "n_iter": 20, "seconds": 2e-4}
    phases = {"fine": 1.5e-4, "coarse": 0.5e-4}
    table = kernels.sheet([whole, replace(whole, **alone, phases=phases)], whole.part)
    assert [line[1:] for line in table.lines] == [
        ["fine", "7.50 µs", "75%"],
        ["coarse", "2.50 µs", "25%"],
        ["all kernels", "10.0 µs", ""],
        ["the iteration, as measured above", "100 µs", ""],
    ]


@pytest.mark.parametrize(
    ("whole", "alone", "said"),
    [
        ((3, 2, 1), (9, 5, 4), "22 (CUDA 3) < 15 (CUDA 2) < 12 (CUDA 1), the same. In 12"),
        ((1, 2, 3), (9, 5, 4), "12 (CUDA 1) < 15 (CUDA 2) < 22 (CUDA 3), reversed. In 12"),
        (
            (2, 1, 3),
            (9, 5, 4),
            "another. In 12, 15 and 22 the kernels take 1% to 5% of an iteration",
        ),
        ((3, 2, 1), (9, 5, 4), "so the host that launches them decides. By the kernels alone it"),
        ((3, 2, 1), (290, 190, 90), "take 90% to 97% of an iteration, so the kernels decide."),
        ((3, 2, 1), (290, 190, 9), "so the kernels decide. In 22 the kernels take 9% of an"),
    ],
)
def test_the_order_of_a_is_explained_by_its_kernels(whole, alone, said):
    made = []
    for rung, spent, kernel in zip(a.VERSIONS, whole, alone):
        run = _timed(rung, 100, spent / 100, n_iter=300, block=1024, device="GPU")
        phases = {"fine": kernel * 2e-5 / 3}
        made += [
            run,
            replace(run, part="kernels", n_iter=20, seconds=phases["fine"], phases=phases),
        ]
    (note,) = a.sheets(made)[-1].notes
    assert said in note
    assert note.startswith("100 points: the document has 22 (CUDA 3) < 15 (CUDA 2) < 12 (CUDA 1)")


def test_the_seconds_of_a_document_are_found_by_what_was_measured():
    attributes = {"part": "300 iterations", "rung": "r22_masked_trees", "n": 100_000, "block": 64}
    assert seconds_in("A", attributes) == 0.0171
    assert seconds_in("A", {**attributes, "n": 99}) is None
    assert seconds_in("walk", attributes) is None


def test_machines_with_one_gpu_and_other_processors_have_tables_of_their_own(tmp_path, page):
    pytest.importorskip("matplotlib")
    for cores, n in ((16, 100), (32, 100_000)):
        facts = {"cpu": "CPU", "cores": cores, "when": f"2026-01-{cores}"}
        row = {**_timed("r01_lloyd", n, 1e-3, n_iter=300, device="GPU").row(), **facts}
        path = tmp_path / "gpu" / "ladder" / "A.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
    page.write_text("<!-- ladder: A -->\n<!-- end -->\n<!-- ladder: summits -->\n<!-- end -->\n")
    _, *pictures = report.write(tmp_path, page)
    text = page.read_text(encoding="utf-8")
    for cores in (16, 32):
        assert text.count(f"**GPU, beside {cores} cores of CPU; ") == 2
    assert {each.name for each in pictures} == {f"gpu-{n}-cores-a-times.png" for n in (16, 32)}


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.5, "2.50 s"), (0.0123, "12.3 ms"), (4.56e-7, "0.46 µs"), (1234.0, "1,234 s"), (None, "")],
)
def test_times_have_three_digits(value, text):
    assert seconds(value) == text


def test_speedups_have_three_digits():
    assert [speedup(value) for value in (0.5, 12.34, 1234.5)] == ["0.50x", "12.3x", "1,234x"]


def test_names_are_for_people():
    made = Measurement("A", "", "r12_atomics", "cuda", 1, 1, 1, "float32", block=64)
    assert name(made) == "12 atomics, blocks of 64"
    assert name(replace(made, rung="r31_engine_cuda")) == "Lloydia on the GPU"


def test_a_scaled_study_of_seedings_scores_a_shape_once(monkeypatch):
    monkeypatch.setattr(seedings, "_scored", lambda *_: ({}, 1.0))
    assert [(each.n, each.k, each.case) for each in seedings.run(Lab(scale=0.001))] == [
        (32, 4, "random points"),
        (32, 4, "farthest first"),
    ]
    assert len(list(seedings.run(Lab()))) == 2 * len(seedings.SIZES)


def test_pages_of_a_scaled_run_name_its_own_k():
    small = _timed("r01_lloyd", 32, 1e-3, n_iter=9, max_iter=300, scale=0.001)
    small = replace(small, k=4)
    figure = a.draw([replace(small, part=a.FIXED)])["times"]
    assert figure.get_suptitle() == "300 iterations, k = 4, float32"
    (table,) = a.sheets([replace(small, part=a.FIXED)])
    assert table.title == "32 points, 300 iterations, float32"
    assert "diamonds" not in "".join(text.get_text() for text in figure.texts)
    (sheet,) = walk.sheets([replace(small, experiment="walk", part="steps")])
    assert sheet.title == "32 x 2, k = 4, float32: an iteration"


def test_an_unknown_experiment_is_refused():
    with pytest.raises(ValueError, match="There is no experiment 'E'"):
        experiment("E")


def test_a_peer_uses_the_cores_there_are():
    assert Lab().contenders(hosts=PEERS)[0].threads == available_threads()
