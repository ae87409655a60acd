"""The tables and figures of B and D, from figures that are made up."""

from dataclasses import replace

import pytest

from lloydia.ladder.experiments import b, d
from lloydia.ladder.experiments.d.sheets import sheets, their_gains, whole
from lloydia.ladder.experiments.documents import seconds_in
from lloydia.ladder.experiments.measurement import Measurement

PHASES = {"upload": 0.001, "kernels": 0.01, "download": 0.04, "host": 0.9}
COPIED = {
    "bytes uploaded": 256.0,
    "bytes downloaded": 67_108_872.0,
    "shortest iteration": 0.08,
    "longest iteration": 0.12,
}


def made(letter, part, rung, n, d, k, spent, n_iter, *, on_gpu=True, **more):
    where = "cuda" if on_gpu else "cpu"
    told = {"seconds": spent, "n_iter": n_iter, "device": "GPU", "max_iter": n_iter} | more
    return Measurement(letter, part, rung, where, n, d, k, "float32", **told)


def run_of_b(scale=1.0):
    """Return B's measurements at 2 coordinates, in two block sizes."""
    found = [made("B", b.LARGE, "r01_lloyd", 16_777_216, 2, 16, 8.0, 10, on_gpu=False)]
    for rung in b.VERSIONS:
        for block in (256, 1024):
            phases = PHASES if rung in b.ON_HOST else {}
            spent = 1.0 if rung in b.ON_HOST else 0.25
            found.append(
                made("B", b.LARGE, rung, 16_777_216, 2, 16, spent, 10, block=block, phases=phases)
            )
    shared = next(each for each in found if (each.rung, each.block) == (b.SHARED, 1024))
    found[found.index(shared)] = replace(shared, figures=COPIED)
    found.append(made("B", b.LARGE, "r26_thread_buffers", 16_777_216, 2, 16, 0.5, 10, block=256))
    found.append(made("B", b.LARGE, "r31_engine_cuda", 16_777_216, 2, 16, 0.01, 10))
    found.append(made("B", b.STOPPED, "r15_all_on_gpu", 16_777_216, 2, 16, 1.5, 66, block=256))
    return [replace(each, scale=scale) for each in found]


def test_b_shows_the_phases_of_the_shared_version_first():
    tables = {sheet.title: sheet for sheet in b.sheets(run_of_b())}
    phases = tables["Where the time of all loops goes"]
    shared, naive, theirs = phases.lines
    assert shared[0] == "16,777,216 x 2, 14 shared centers, blocks of 1024"
    assert shared[1:] == [
        "0.1%, 1.00 ms, 256 bytes a loop",
        "1.1%, 10.0 ms",
        "4.2%, 40.0 ms, 67,108,872 bytes a loop",
        "94.6%, 900 ms",
        "80.0 ms",
        "120 ms",
    ]
    assert naive[0].endswith("10 naive, blocks of 1024")
    assert theirs[3] == "18.8%, 151 ms, 1,024 bytes a loop"


def test_b_shows_gains_by_block_and_what_it_suggests():
    tables = {sheet.title: sheet for sheet in b.sheets(run_of_b())}
    gains = tables["16,777,216 x 2: the versions by block size, speed-up"]
    assert gains.heads == ["threads a block", "256", "1024"]
    assert gains.lines[0] == ["10 naive", "8.00x", "8.00x"]
    assert gains.lines[3] == ["15 all on gpu", "32.0x", "32.0x"]
    (suggested,) = tables["16,777,216 x 2: what the document suggests"].lines
    assert suggested[-4:] == ["15 all on gpu, blocks of 256", "250 ms", "", "0.50x"]
    (stopped,) = tables["Until at most 0.1% of the objects change, 66 loops at most"].lines
    assert stopped[1:] == ["1.50 s", "66"]


@pytest.mark.parametrize(("scale", "bands"), [(1.0, 2), (0.1, 0)])
def test_b_draws_the_document_s_gain_for_its_own_size_alone(scale, bands):
    pytest.importorskip("matplotlib")
    figures = b.draw(run_of_b(scale))
    assert set(figures) == {"time-2", "speedup-2", "phases"}
    axes = figures["speedup-2"].axes
    labels = [label for ax in axes for label in ax.get_legend_handles_labels()[1]]
    assert labels.count("7x to 8x, the document's naive") == bands
    assert all(ax.get_yscale() == "linear" and ax.get_ylim()[0] == 0 for ax in axes)


def run_of_d():
    """Return D's measurements of one size, of the series of k, and of what it says beside them."""
    n, found = 10_000_000, []
    for k in (2, 7):
        for rung, spent, n_iter in (
            ("r01_lloyd", 4.0, 10),
            ("r60_sequential_sums", 2.0, 10),
            ("r64_float_sums", 4.0, 200),
            ("r25_cluster_arrays", 1.0, 200),
            ("r31_engine_cuda", 0.01, 9),
        ):
            theirs = seconds_in("D", {"part": "sizes", "rung": rung, "n": n, "k": k})
            cpu = {"on_gpu": rung[1] in "236" and rung != "r60_sequential_sums", "theirs": theirs}
            found.append(made("D", "sizes", rung, n, 3, k, spent, n_iter, **cpu))
    for k, ratio in ((1, 8.0), (10, 1.0), (27, 0.5)):
        found.append(made("D", "clusters", "r64_float_sums", 2_000_000, 3, k, 1.0, 100))
        found.append(made("D", "clusters", "r25_cluster_arrays", 2_000_000, 3, k, 1 / ratio, 100))
        found.append(made("D", "clusters", "r31_engine_cuda", 2_000_000, 3, k, 0.01, 2))
    for k in (2, 50):
        for rung, spent in (("r01_lloyd", 1.2), ("r60_sequential_sums", 0.4)):
            theirs = seconds_in("D", {"part": "OpenMP", "rung": rung, "k": k})
            own = {"on_gpu": False, "theirs": theirs, "threads": 16}
            found.append(made("D", "OpenMP", rung, n, 3, k, spent, 3, **own))
    for rung, kernels in (("r13_transposed", 0.02), ("r14_shared_centers", 0.01)):
        found.append(made("D", "centres", rung, n, 3, 2, 1.0, 10, phases={"kernels": kernels}))
    for rung, spent in (("r60_sequential_sums", 1.0), ("r63_critical_sums", 4.0)):
        found.append(made("D", "sums", rung, 1_000_000, 3, 7, spent, 5, on_gpu=False))
    return found


def test_d_has_its_own_tables_beside_ours():
    tables = {sheet.title: sheet for sheet in sheets(run_of_d())}
    times = tables["k = 7: 200 iterations, as in table 5"]
    (line,) = times.lines
    told = dict(zip(times.heads, line))
    assert told["01 lloyd"] == "80.0 s"
    assert line[times.heads.index("01 lloyd") + 1] == "177 s"
    assert told["Lloydia on the GPU"] == "10.0 ms in 9"
    assert any("10 iterations were timed; the table shows" in note for note in times.notes)
    (gains,) = tables["k = 2: gain over one thread, as in table 4"].lines
    assert gains == ["10,000,000", "2.00x", "1.1x", "20.0x", "19x", "80.0x", "110.5x", "8,000x"]


def test_d_has_table_2():
    title = "2,000,000 pixels, 100 iterations: gain over atomics, as in table 2"
    (table,) = (sheet for sheet in sheets(run_of_d()) if sheet.title == title)
    assert [line[2:5] for line in table.lines] == [
        ["125 ms", "8.00x", "8.14x"],
        ["1.00 s", "1.00x", "1.15x"],
        ["2.00 s", "0.50x", "0.39x"],
    ]
    assert their_gains("table 2")[15] == 0.78


def test_a_fit_of_lloydia_is_never_divided_by_its_iterations():
    """At k = 1 it ends after two: what it sets up first would be half of each."""
    few = made("D", "clusters", "r31_engine_cuda", 2_000_000, 3, 1, 0.01, 2)
    assert whole(few, 100) == 0.01
    assert whole(replace(few, rung="r25_cluster_arrays"), 100) == 0.5


def test_d_has_openmp_centres_and_sums():
    tables = {sheet.title: sheet for sheet in sheets(run_of_d())}
    team = tables["10,000,000 pixels, 12 iterations, as in tables 7 and 8"].lines
    assert team[1] == ["50", "4.80 s", "108 s", "1.60 s", "23.0 s", "3.00x", "4.7x", ""]
    (centres,) = tables["10,000,000 pixels: centres in global and shared memory"].lines
    assert centres == ["2", "2.00 ms", "1.00 ms", "0.50x", "", "", "", "0.50x"]
    sums = tables["1,000,000 pixels, k = 7: sums and schedules on threads"].lines
    assert sums[-1][1:] == ["800 ms", "0.25x", "slower"]


def test_d_draws_every_part():
    pytest.importorskip("matplotlib")
    figures = d.draw(run_of_d())
    assert set(figures) == {"sizes", "gains", "clusters", "openmp"}
    hues = {line.get_color() for line in figures["sizes"].axes[0].get_lines()}
    assert len(hues) == 5  # C++ and OpenMP have not the same
    notes = {short: figure.texts[-1].get_text() for short, figure in figures.items()}
    assert notes["sizes"] == "diamonds: the document's times"
    assert notes["gains"] == "diamonds: quotients of the document's times"
    assert notes["clusters"].endswith("diamonds: the document's gains")
    assert notes["openmp"].endswith("diamonds: the document's times, right their quotients")
