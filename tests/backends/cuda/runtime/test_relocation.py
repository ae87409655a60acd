"""Recorded launches are repeated in other memory."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.rows.fp16_rows import Fp16Rows
from lloydia.backends.cuda.runtime import launch_configs, recording, relocation
from lloydia.backends.cuda.runtime.arena import ALIGNED
from lloydia.backends.cuda.runtime.launch_configs import configs_of
from lloydia.backends.cuda.runtime.launching import Launch, note
from lloydia.backends.cuda.runtime.loaded_kernels import LoadedKernel
from lloydia.backends.cuda.runtime.relocation import (
    ZEROED_BYTES,
    BufferMap,
    Relocation,
    overlap,
    replay_times,
)


def memory():
    block = torch.zeros(64, dtype=torch.int64)
    return [torch.zeros(10), block[:32], block[32:]]


def launch_in(parts):
    """Return a launch with views, numbers and nothing among its arguments."""
    rows, first, second = parts
    args = rows[3:], 7, first.view(torch.int32)[5:], None, second, 0.5
    return launch_of(args, ("*fp32", "i32", "*i32", "constexpr", "*i64", "fp32", "constexpr"))


def launch_of(args, kinds):
    about = SimpleNamespace(
        launch_cooperative_grid=False, launch_pdl=False, num_ctas=1, num_warps=4, shared=9,
        global_scratch_size=0, profile_scratch_size=0,
    )  # fmt: skip
    source = SimpleNamespace(signature=dict(enumerate(kinds)))
    places = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
    compiled = SimpleNamespace(metadata=about, src=source, asm={"ptx": ""})
    return Launch(LoadedKernel(compiled, 11), (3, 2, 1), [*places, 64], args)


@pytest.fixture(autouse=True)
def no_driver(monkeypatch):
    monkeypatch.setattr(launch_configs, "function", lambda name: 99)


def test_addresses_are_those_in_the_other_memory():
    before, after = memory(), memory()
    found = Relocation([launch_in(before)] * 2, before).launches(after)
    expected = configs_of([launch_in(after)] * 2)
    assert found.values.tolist() == expected.values.tolist()
    assert found.values.tolist() != configs_of([launch_in(before)] * 2).values.tolist()
    assert found.configs.table.tolist() == expected.configs.table.tolist()
    assert found.keep_alive == after


def test_memory_that_comes_back_is_known(monkeypatch):
    before, first, second = memory(), memory(), memory()
    recorded = Relocation([launch_in(before)], before)
    found = recorded.launches(first)
    other = recorded.launches(second)
    again = recorded.launches(first)
    # The same numbers at the same place, and nothing of the fits before is held by them.
    assert again.values is found.values
    assert again.address == found.address
    assert again is not found
    assert other.values.tolist() == configs_of([launch_in(second)]).values.tolist()
    assert all(each.keep_alive is None for each in recorded.by_addresses.values())
    # One part elsewhere is other memory.
    mixed = [second[0], *first[1:]]
    assert (
        recorded.launches(mixed).values.tolist() == configs_of([launch_in(mixed)]).values.tolist()
    )
    monkeypatch.setattr(relocation, "MAX_ADDRESSES", 2)
    third = memory()
    assert (
        recorded.launches(third).values.tolist() == configs_of([launch_in(third)]).values.tolist()
    )
    assert len(recorded.by_addresses) <= 2


def test_scratch_elsewhere_is_other_memory(monkeypatch):
    parts, scratch = memory(), torch.ones(3)
    launch = launch_of((scratch, parts[0]), ("*fp32",) * 2)
    recorded = Relocation([launch], parts, [scratch])
    one, other = recorded.launches(parts), recorded.launches(parts)
    assert one.values[0] == one.keep_alive[-1].data_ptr()
    assert other.values[0] == other.keep_alive[-1].data_ptr()
    assert one.values[0] != other.values[0]
    assert recorded.launches(parts, zeros_address=8).values.tolist()[1:] == one.values.tolist()[1:]


def test_scratch_is_of_one_piece_of_its_own():
    parts, (first, second) = memory(), [torch.ones(3), torch.ones(5)]
    launch = launch_of((first, second, parts[0]), ("*fp32",) * 3)
    recorded = Relocation([launch], parts, [first, second], [second])
    found = recorded.launches(parts)
    rest, zeros = found.keep_alive[-2:]
    places = [rest.data_ptr(), zeros.data_ptr(), parts[0].data_ptr()]
    assert found.values[:3].tolist() == places
    assert (len(rest), len(zeros)) == (ALIGNED, ALIGNED)
    assert not zeros.any()
    # Zeros that are there already are taken.
    given = recorded.launches(parts, zeros_address=1 << 20)
    assert given.values[1] == 1 << 20
    assert len(given.keep_alive) == len(parts) + 1


def test_more_zeros_than_there_are_are_made():
    parts, (first, second) = memory(), [torch.ones(ZEROED_BYTES // 4), torch.ones(5)]
    launch = launch_of((first, second), ("*fp32",) * 2)
    found = Relocation([launch], parts, [first, second], [first, second]).launches(
        parts, zeros_address=1 << 20
    )
    begin = found.keep_alive[-1].data_ptr()
    assert found.values[:2].tolist() == [begin, begin + ZEROED_BYTES]


def test_what_is_empty_stays_where_it_was():
    before, after = memory(), memory()
    none = torch.empty(0)
    found = Relocation([launch_of((before[0], none), ("*fp32", "*fp32"))], before).launches(after)
    assert found.values.tolist() == [after[0].data_ptr(), none.data_ptr(), 0, 0]


def test_memory_that_is_no_part_is_noticed():
    before = memory()
    with pytest.raises(IndexError):
        Relocation([launch_in(before)], before[:2])


def test_more_or_fewer_parts_than_it_was_made_for_are_refused():
    before, after = memory(), memory()
    recorded = Relocation([launch_in(before)], before)
    for parts in (after[:2], [*after, torch.zeros(3)]):
        with pytest.raises(
            RuntimeError, match=f"with 3 buffers and are repeated with {len(parts)}"
        ):
            recorded.launches(parts)


def test_records_keep_no_memory_alive():
    before = memory()
    assert Relocation([launch_in(before)], before).configs.keep_alive is None


def test_only_so_many_are_kept(monkeypatch):
    kept: dict = {}
    monkeypatch.setattr(relocation, "_recorded", kept)
    for key in range(relocation.MAX_RECORDED + 3):
        relocation.store(key, Relocation([], []))
        assert key in kept
    assert len(kept) <= relocation.MAX_RECORDED


class Owner:
    def __init__(self, key, *buffers):
        self.key, self.buffers = key, buffers


def test_a_layout_has_all_that_its_owners_have():
    X, numbers, lists = torch.zeros(4, 2), torch.zeros(3), torch.zeros(5)
    buffer_map = BufferMap.of(
        "work", X, Owner((7, True), numbers), Owner("b", X, lists), more=(True,)
    )
    about = torch.Size((4, 2)), torch.float32, X.data_ptr() % 16
    assert buffer_map.key == ("work", *about, (True,), (7, True), "b")
    assert all(a is b for a, b in zip(buffer_map.buffers, (X, numbers, X, lists), strict=True))


def test_what_shares_memory():
    whole = torch.zeros(40, 2)
    assert overlap(whole, whole)
    assert overlap(whole[:8], whole)
    assert overlap(whole, whole[30:])
    assert not overlap(whole[:8], whole[8:])
    assert not overlap(whole, torch.zeros(40, 2))


def test_a_key_holds_no_memory_but_where_it_begins(device):
    rows = place_rows(torch.ones(40, 20), None, "cuda")
    memory = tuple(part.clone() for part in Fp16Rows(rows).memory)
    first = Fp16Rows(rows, memory)
    keys = [
        BufferMap.of("fp16_rows", rows.X, fp16_rows).key for fp16_rows in (Fp16Rows(rows), first)
    ]
    assert keys[0] != keys[1]
    for part in (part for key in keys for part in key):
        assert not any(isinstance(x, torch.Tensor) for x in (part if type(part) is tuple else ()))
    off = (memory[0], torch.zeros(41)[1:], memory[2])
    assert BufferMap.of("fp16_rows", rows.X, Fp16Rows(rows, off)).key != keys[1]


@pytest.mark.parametrize("interpreted", [False, True])
def test_work_that_is_to_be_done_no_time_is_not_done(interpreted, monkeypatch):
    monkeypatch.setattr(recording, "INTERPRETED", interpreted)
    done, record = [], recording.Recording()
    record.do(lambda: [partial(done.append, 1)], torch.device("cpu"), times=0)
    assert done == []
    assert record.times == 0


@pytest.fixture
def queued(monkeypatch):
    """Return what is queued by the driver: how many launches together, and how often."""
    log = []

    def queue(self, stream, times=1):
        log.append((self.configs.count, times))

    monkeypatch.setattr(launch_configs.LaunchConfigs, "queue", queue)
    monkeypatch.setattr(relocation, "stream_of", lambda number: 0)
    monkeypatch.setattr(relocation, "_recorded", {})
    return log


def test_recorded_works_are_queued_so_often_each(queued):
    parts, done = memory(), []

    def work(count):
        done.append(count)
        note([launch_in(parts)] * count)

    def queue(times):
        first, second = [partial(work, 1)], [partial(work, 1), partial(work, 3)]
        works = [lambda: first, lambda: second]
        replay_times(works, times, torch.device("cpu"), BufferMap("works", parts))

    queue((1, 3))
    # Done by name once, then repeated.
    assert done == [1, 1, 3]
    assert queued == [(1, 0), (4, 2)]
    queued.clear()
    queue((2, 7))
    assert done == [1, 1, 3]
    assert queued == [(1, 2), (4, 7)]


def test_works_that_launch_nothing_are_done_so_often_each(queued):
    done = []
    stages = [[partial(done.append, name) for name in names] for names in ("a", "bc")]
    works = [lambda: stages[0], lambda: stages[1]]
    replay_times(works, (1, 3), torch.device("cpu"), BufferMap("works", memory()))
    assert done == ["a", *"bc" * 3]
    assert queued == []
