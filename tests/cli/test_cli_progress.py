"""The line of progress: what is done, how much of it, and the time that is left."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lloydia.cli.progress import Status
from lloydia.progress.stages import Stage


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Work:
    """A command whose stages take as long as the test says."""

    def __init__(self, label="1,000 clusters"):
        self.clock = Clock()
        self.status = Status(label, self.clock)

    def begin(self, name, total, **options):
        stage = Stage(name, total, **options)
        self.status.on_stage(stage)
        return stage

    def step(self, stage, seconds, count=1):
        for _ in range(count):
            self.clock.now += seconds
            stage.done += 1
            self.status.on_stage(stage)

    def end(self, stage):
        stage.is_over = True
        self.status.on_stage(stage)

    def iterate(self, seconds, numbers, max_iter=300):
        for number in numbers:
            self.clock.now += seconds
            self.status.on_iteration(SimpleNamespace(iteration=number, max_iter=max_iter))

    @property
    def line(self):
        return self.status.words(), self.status.fraction(), self.status.left()


def test_where_nothing_is_known_the_label_is_shown():
    assert Work("reading \x1b[31m.csv").line == (r"reading \x1b[31m.csv", None, "")


def test_a_seeding():
    work = Work()
    stage = work.begin("centers", 1000, done=1)
    assert work.line == ("seeding: centre 2 of 1,000", 0.001, "")
    work.step(stage, 0.1, 499)
    assert work.line == ("seeding: centre 501 of 1,000", 0.5, "about 50 s of seeding left")
    work.end(stage)
    assert work.line == ("1,000 clusters", None, "")


def test_a_seeding_in_rounds_does_not_know_its_end():
    work = Work()
    work.step(work.begin("rounds", 6), 3.0, 2)
    assert work.line == ("seeding: round 3 of 6", 2 / 6, "")


def test_iterations():
    work = Work()
    work.end(work.begin("centers", 1000))
    work.iterate(2.0, [1])
    assert work.line == ("iteration 2, at most 300", 1 / 300, "")
    work.iterate(2.0, [2])
    assert work.line == ("iteration 3, at most 300", 2 / 300, "at most 9 min 56 s left")
    work.iterate(2.0, range(3, 301))
    assert work.line == ("iteration 300, at most 300", 1.0, "")


def test_iterations_of_a_fit_that_goes_on():
    work = Work()
    work.iterate(2.0, [99, 100])
    assert work.line == ("iteration 101, at most 300", 1 / 3, "at most 6 min 40 s left")


def test_several_runs():
    work = Work()
    runs = work.begin("runs", 4)
    work.end(work.begin("centers", 9))
    work.iterate(1.0, range(1, 11), 20)
    assert work.line == (
        "run 1 of 4: iteration 11, at most 20",
        0.5,
        "at most 10 s of this run left",
    )
    work.step(runs, 0.0)
    assert work.line[0] == "run 2 of 4"
    work.iterate(1.0, range(1, 11), 20)
    work.step(runs, 0.0)
    seeding = work.begin("centers", 9)
    # The runs after the first tell how long the others take.
    assert work.line == ("run 3 of 4: seeding: centre 1 of 9", 0.0, "about 20 s left")
    work.end(seeding)
    work.iterate(1.0, range(1, 6), 20)
    assert work.line == ("run 3 of 4: iteration 6, at most 20", 0.25, "about 15 s left")


def test_a_single_run_is_not_counted():
    work = Work()
    work.begin("runs", 1)
    work.iterate(1.0, [1, 2], 12)
    assert work.line == ("iteration 3, at most 12", 1 / 6, "at most 10 s left")


def test_iterations_of_one_image_among_several():
    work = Work()
    work.begin("images", 3)
    work.iterate(1.0, [1, 2], 12)
    assert work.line == (
        "image 1 of 3: iteration 3, at most 12",
        1 / 6,
        "at most 10 s of this image left",
    )


def test_blocks_of_a_pass():
    work = Work()
    work.step(work.begin("blocks", 10), 3.0, 4)
    assert work.line == ("block 5 of 10", 0.4, "about 18 s of this pass left")
    work = Work()
    seeding = work.begin("centers", 11, done=1)
    work.step(seeding, 4.0, 5)
    work.step(work.begin("blocks", 10), 0.1, 2)
    words, fraction, left = work.line
    assert words == "seeding: centre 7 of 11: block 3 of 10"
    assert (fraction, left) == (6 / 11, "about 20 s of seeding left")


def test_an_iteration_ends_with_its_blocks():
    work = Work()
    work.iterate(1.0, [1], 3)
    work.begin("blocks", 10)
    assert work.line[0] == "iteration 2, at most 3: block 1 of 10"
    assert work.line[1] == 1 / 3


def test_the_bytes_of_a_file():
    work, read = Work("reading big.csv"), [0]
    work.begin("bytes", 1000, position=lambda: read[0])
    assert work.line == ("reading big.csv", 0.0, "")
    for now, position in ((1.0, 50), (5.0, 250)):
        work.clock.now, read[0] = now, position
        words, fraction, left = work.line
    assert (words, fraction, left) == ("reading big.csv", 0.25, "about 15 s left")


def test_a_block_alone_is_not_counted():
    work = Work("predicting")
    work.begin("blocks", 1)
    assert work.line == ("predicting", None, "")


@pytest.mark.parametrize("width", [20, 60, 200])
def test_the_line_is_as_wide_as_the_terminal(width, monkeypatch):
    from rich.console import Console

    from lloydia.cli import progress

    work = Work()
    work.step(work.begin("centers", 1000), 1.0, 500)
    console = Console(width=width, force_terminal=True, color_system=None)
    with console.capture() as caught:
        console.print(progress._line(work.status, console)())
    lines = caught.get().splitlines()
    assert len(lines) == 1
    assert len(lines[0].rstrip()) <= width
    assert ("━" in lines[0]) == (width == 200)
