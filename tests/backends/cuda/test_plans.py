"""A plan launches in other memory what was launched in some."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from lloydia.backends.cuda import plans
from lloydia.backends.cuda.launching import Launch
from lloydia.backends.cuda.plans import Layout, Plan


def memory():
    block = torch.zeros(64, dtype=torch.int64)
    return [torch.zeros(10), block[:32], block[32:]]


def launch_in(parts):
    """Return a launch with views, numbers and nothing among its arguments."""
    rows, first, second = parts
    args = rows[3:], 7, first.view(torch.int32)[5:], None, second, 0.5
    places = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
    return Launch(SimpleNamespace(run=None), (3, 2, 1), [*places, 64], args)


def test_addresses_are_those_in_the_other_memory():
    before, after = memory(), memory()
    (found,) = Plan([launch_in(before)], before).launches(after)
    expected = launch_in(after)
    assert found.places == expected.places
    assert found.places != launch_in(before).places
    assert found.grid == expected.grid
    assert found.kept is after


def test_what_is_empty_stays_where_it_was():
    before, after = memory(), memory()
    none = torch.empty(0)
    launch = Launch(
        SimpleNamespace(run=None), (1, 1, 1), [before[0].data_ptr(), 0], (before[0], none)
    )
    (found,) = Plan([launch], before).launches(after)
    assert found.places == [after[0].data_ptr(), none.data_ptr()]


def test_memory_that_is_no_part_is_noticed():
    before = memory()
    with pytest.raises(IndexError):
        Plan([launch_in(before)], before[:2])


def test_only_so_many_are_kept(monkeypatch):
    kept: dict = {}
    monkeypatch.setattr(plans, "_plans", kept)
    for key in range(plans.MOST + 3):
        plans.remember(key, Plan([], []))
        assert key in kept
    assert len(kept) <= plans.MOST


class Owner:
    def __init__(self, **values):
        vars(self).update(values)


def test_a_layout_has_all_that_its_owners_have():
    X, numbers, lists = torch.zeros(4, 2), torch.zeros(3), torch.zeros(5)
    layout = Layout.of(
        "work", X, Owner(a=numbers, b=7, c=[1]), Owner(d=None, e=lists), more=(True,)
    )
    assert layout.key == ("work", 4, 2, torch.float32, X.data_ptr() % 16, True, 7, None)
    assert all(a is b for a, b in zip(layout.parts, (X, numbers, lists), strict=True))
