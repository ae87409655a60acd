"""The choice of auto: what it begins with, when it tries another, and which one it keeps."""

from __future__ import annotations

import pytest

from lloydia.algorithms.auto import TRIAL, Auto


def start(
    n, d, k, sparse=False, ordered=False, units=False, max_iter=300, allows=lambda name: True
) -> Auto:
    """Return what decides for a run."""
    return Auto(n, d, k, sparse, ordered, units, max_iter, allows)


def run(auto: Auto, costs: dict[str, float], iterations: int, moving: float = 0.0) -> list[str]:
    """Return what is used in each iteration, where one of an algorithm always costs the same.

    `moving` is the share of rows that change cluster in each.
    """
    used = []
    for _ in range(iterations):
        used.append(auto.using)
        assert auto.after(costs[auto.using], moving) == auto.using
    return used


@pytest.mark.parametrize(
    ("n", "d", "k", "sparse", "first"),
    [
        (150, 4, 3, False, "lloyd"),
        (1_000_000, 2, 1000, True, "lloyd"),
        (1_000_000, 2, 5000, False, "filtering"),
        (10_000_000, 3, 16, False, "lloyd"),
        (1_000_000, 8, 5000, False, "hamerly"),
        (200_000, 2, 1000, False, "filtering"),
        (1_000_000, 2, 100, False, "filtering"),
        (1_000_000, 16, 64, False, "lloyd"),
        (1_000_000, 16, 1000, False, "hamerly"),
    ],
)
def test_what_it_begins_with(n, d, k, sparse, first):
    assert start(n, d, k, sparse, ordered=False).using == first


def test_a_small_problem_stays_with_lloyd():
    auto = start(1797, 64, 10, sparse=False, ordered=False)
    assert set(run(auto, {"lloyd": 1.0}, 300)) == {"lloyd"}


def test_rows_are_put_in_order_once_the_run_has_cost_as_much():
    costs = {"lloyd": 1.0, "filtering": 0.1}
    used = run(start(10_000_000, 3, 16, sparse=False, ordered=False), costs, 150)
    change = used.index("filtering")
    assert 15 < change < 30
    assert set(used[change:]) == {"filtering"}


@pytest.mark.parametrize(
    ("k", "moving", "first", "last"), [(64, 0.03, 3, 3), (64, 0.029, 10, 12), (16, 0.5, 20, 25)]
)
def test_rows_are_put_in_order_soon_where_many_still_change(k, moving, first, last):
    """Unless there are so few clusters that the order costs what a whole run does."""
    costs = {"lloyd": 1.0, "filtering": 0.1}
    used = run(start(1_000_000, 3, k, sparse=False, ordered=False), costs, 60, moving)
    assert first <= used.index("filtering") <= last
    assert "lloyd" not in used[used.index("filtering") :]


@pytest.mark.parametrize(
    ("n", "d", "k"), [(16_777_216, 2, 16), (1_000_000, 2, 100), (2_097_152, 16, 16)]
)
def test_what_takes_longer_to_pay_than_the_run_lasts_is_not_begun(n, d, k):
    auto = start(n, d, k, sparse=False, ordered=False, max_iter=2)
    costs = {"lloyd": 1.0, "filtering": 0.1, "hamerly": 0.1}
    assert set(run(auto, costs, 2)) == {"lloyd"}


def test_a_short_run_does_not_put_rows_in_order_half_way():
    costs = {"lloyd": 1.0, "filtering": 0.1}
    auto = start(16_777_216, 2, 16, sparse=False, ordered=False, max_iter=20)
    assert set(run(auto, costs, 20)) == {"lloyd"}


def test_what_many_changing_rows_promise_is_not_begun_near_the_end():
    costs = {"lloyd": 1.0, "filtering": 0.1}
    auto = start(1_000_000, 3, 40, sparse=False, ordered=False, max_iter=18)
    assert set(run(auto, costs, 18, moving=0.5)) == {"lloyd"}


def test_rows_in_order_are_filtered_at_once():
    assert start(10_000_000, 3, 16, sparse=False, ordered=True).using == "filtering"


def test_a_trial_that_loses_is_short_and_comes_again_much_later():
    costs = {"hamerly": 1.0, "yinyang": 1.5}
    used = run(start(1_000_000, 48, 256, sparse=False, ordered=False), costs, 300)
    tried = [i for i, name in enumerate(used) if name == "yinyang"]
    first = tried[0]
    assert 10 < first < 15
    assert tried[:TRIAL] == list(range(first, first + TRIAL))
    assert tried[TRIAL] > 3 * first
    total = sum(costs[name] for name in used)
    assert total < 1.05 * len(used)
    # Wherever the run ends.
    assert all(sum(costs[x] for x in used[:i]) < 1.15 * i for i in range(1, 301))


def test_several_bounds_are_not_tried_against_matrix_units():
    auto = start(100_000, 768, 1000, units=True)
    assert set(run(auto, {"hamerly": 1.0}, 300)) == {"hamerly"}


def test_bounds_whose_memory_is_not_there_are_not_begun():
    """It is asked for when they are to begin: much may have happened since the start."""
    asked = []

    def allows(name):
        asked.append(name)
        return name == "elkan" and len(asked) == 1

    auto = start(100_000, 768, 1000, allows=allows)
    assert set(run(auto, {"hamerly": 1.0}, 300)) == {"hamerly"}
    assert asked == ["elkan", "elkan", "yinyang"]


def test_a_bound_for_each_centre_is_tried_soon_where_distances_are_long():
    costs = {"hamerly": 1.0, "elkan": 0.5, "yinyang": 0.45}
    used = run(start(100_000, 768, 1000), costs, 60)
    change = used.index("elkan")
    assert 7 < change < 11
    assert set(used[change:][:20]) == {"elkan"}
    # Not much faster, when it is tried.
    assert used.count("yinyang") <= TRIAL
    without = start(100_000, 768, 1000, allows=lambda name: name != "elkan")
    for other in (without, start(100_000, 255, 1000)):
        assert set(run(other, costs, 60)) == {"hamerly", "yinyang"}


def test_what_lost_leaves_its_turn_to_the_next():
    costs = {"hamerly": 1.0, "elkan": 1.5, "yinyang": 0.5}
    used = run(start(100_000, 768, 1000), costs, 100)
    assert used.count("elkan") == TRIAL
    assert used[-1] == "yinyang"


def test_a_trial_that_wins_goes_on():
    costs = {"hamerly": 1.0, "yinyang": 0.5}
    used = run(start(1_000_000, 48, 256, sparse=False, ordered=False), costs, 60)
    assert set(used[used.index("yinyang") :]) == {"yinyang"}


def test_a_trial_that_is_hardly_faster_does_not_win():
    costs = {"hamerly": 1.0, "yinyang": 0.95}
    used = run(start(1_000_000, 48, 256, sparse=False, ordered=False), costs, 40)
    assert used.count("yinyang") == TRIAL


def test_bounds_are_tried_late_where_a_row_is_soon_scored():
    costs = {"lloyd": 1.0, "hamerly": 0.5}
    used = run(start(1_000_000, 16, 64, sparse=False, ordered=False), costs, 60)
    change = used.index("hamerly")
    assert 10 < change < 15
    assert set(used[change:]) == {"hamerly"}


def test_boxes_of_many_features_are_tried_late():
    costs = {"lloyd": 1.0, "hamerly": 2.0, "filtering": 2.0}
    used = run(start(500_000, 8, 100, sparse=False, ordered=False), costs, 60)
    assert set(used) == {"lloyd"}
    costs = {"hamerly": 1.0, "filtering": 2.0}
    used = run(start(1_000_000, 8, 300, sparse=False, ordered=False), costs, 60, moving=0.5)
    assert used.index("filtering") > 20


def test_compiling_in_the_first_iteration_does_not_hasten_a_trial():
    auto = start(1_000_000, 48, 256, sparse=False, ordered=False)
    auto.after(100.0, 1.0)
    used = run(auto, {"hamerly": 1.0, "yinyang": 0.5}, 10)
    assert set(used) == {"hamerly"}


def test_waiting_for_a_processor_does_not_hasten_the_order():
    auto = start(10_000_000, 3, 16, sparse=False, ordered=False)
    assert [auto.after(1.0 if i < 2 else 9.0, 0.0) for i in range(15)] == ["lloyd"] * 15
