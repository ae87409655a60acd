"""The time that stages still take, by a clock that the test sets."""

from __future__ import annotations

import pytest

from lloydia.progress.estimates import Pace, duration


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (1.4, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (601, "10 min"),
        (3599, "1 h"),
        (3600 + 5 * 60, "1 h 5 min"),
        (7200, "2 h"),
    ],
)
def test_durations_are_for_people(seconds, text):
    assert duration(seconds) == text


def test_steps_of_one_length():
    clock = Clock()
    pace = Pace(clock)
    assert pace.seconds_left(10) is None
    clock.now += 60.0
    pace.note(1)
    assert pace.seconds_left(10) is None, "the first step may have waited for a compiler"
    for done in range(2, 5):
        clock.now += 2.0
        pace.note(done)
        assert pace.seconds_left(10) == pytest.approx(2.0 * (10 - done))
    clock.now += 1.5
    assert pace.seconds_left(10) == pytest.approx(2.0 * 6 - 1.5), "the present step is under way"
    clock.now += 11
    assert pace.seconds_left(10) is None, "the rest takes longer than was estimated"


def test_steps_that_become_faster_are_measured_by_those_of_late():
    clock = Clock()
    pace = Pace(clock)
    for done in range(1, 101):
        clock.now += 10.0 if done <= 50 else 1.0
        pace.note(done)
    assert pace.seconds_left(200) == pytest.approx(100, rel=0.25)


def test_steps_that_were_done_before_take_no_time():
    clock = Clock()
    pace = Pace(clock, 40)
    for done in (41, 42):
        clock.now += 3.0
        pace.note(done)
    assert pace.seconds_left(44) == pytest.approx(6.0)


def test_few_marks_are_kept():
    clock = Clock()
    pace = Pace(clock)
    for done in range(1, 100_001):
        clock.now += 0.01
        pace.note(done)
    assert len(pace.marks) < 200
    assert pace.seconds_left(200_000) == pytest.approx(1000, rel=0.05)
