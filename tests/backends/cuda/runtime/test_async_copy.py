"""Copies to the host by way of seats, seen by a driver that copies when it is waited for."""

from __future__ import annotations

import gc
from ctypes import memmove
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.runtime import async_copy, own_device
from lloydia.backends.cuda.runtime.async_copy import SLOT_BYTES, AsyncCopy


class Device(torch.Tensor):
    """A tensor that says that it is on the first GPU."""

    is_cuda = True
    device = SimpleNamespace(index=0, type="cuda")


class Driver:
    """Copies late: when an event is waited for that was noted after the copy."""

    def __init__(self):
        self.queued, self.events, self.noted = [], 0, {}

    def cuEventCreate(self, event, flags):
        self.events += 1
        event._obj.value = self.events
        return 0

    def cuMemcpyDtoHAsync_v2(self, to, source, size, stream):
        assert stream == 5
        # A copy that nobody has waited for would come over this one.
        assert all(to != other for copies in self.noted.values() for other, *_ in copies)
        self.queued.append((to, source, size))
        return 0

    def cuEventRecord(self, event, stream):
        self.noted[event], self.queued = self.queued, []
        return 0

    def cuEventSynchronize(self, event):
        for copy in self.noted.pop(event, []):
            memmove(*map(int, copy))
        return 0


@pytest.fixture
def driver(monkeypatch):
    found = Driver()
    monkeypatch.setattr(async_copy, "driver", lambda: found)
    monkeypatch.setattr(async_copy, "enter", lambda: None)
    monkeypatch.setattr(async_copy, "stream_of", lambda device: 5)
    monkeypatch.setattr(async_copy, "_free", {})
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(own_device, "current_device", lambda: 0)
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, pin_memory=False, **o: empty(*a, **o))
    return found


def there(array):
    return torch.from_numpy(array).as_subclass(Device)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float64"])
def test_a_part_comes_in_its_type(driver, dtype):
    source = np.arange(24).reshape(6, 4).astype(dtype)
    found = AsyncCopy(there(source), 2, 5).numpy()
    assert found.dtype == source.dtype
    assert (found == source[2:5]).all()
    assert driver.events == 1


def test_what_came_stays_when_the_seat_is_used_again(driver):
    first, second = np.arange(8), np.arange(8) + 100
    one = AsyncCopy(there(first))
    kept = one.numpy()
    other = AsyncCopy(there(second))
    assert (other.numpy() == second).all()
    assert (kept == first).all()
    assert one.numpy() is kept
    assert driver.events == 1


def test_two_on_their_way_have_a_seat_each(driver):
    arrays = [np.arange(8) + 10 * i for i in range(3)]
    coming = [AsyncCopy(there(array)) for array in arrays]
    assert driver.events == 3
    assert all((one.numpy() == array).all() for one, array in zip(coming, arrays))


def test_a_seat_that_nobody_waited_for_is_waited_for(driver):
    dropped = AsyncCopy(there(np.full(8, 7)))
    del dropped
    source = np.arange(8)
    one = AsyncCopy(there(source))
    assert driver.events == 1
    assert (one.numpy() == source).all()
    assert not driver.noted


def test_what_kernels_may_still_write_to_is_waited_for(driver):
    dropped = AsyncCopy.written(8, Device.device)
    del dropped
    assert [slot.taken for slot in async_copy._free[0]] == [True]


def test_seats_that_nobody_waited_for_are_taken_last(driver):
    kept, dropped = AsyncCopy(there(np.arange(8))), AsyncCopy(there(np.arange(8)))
    kept.numpy()
    del dropped
    free = async_copy._free[0]
    assert [slot.taken for slot in free] == [True, False]


@pytest.mark.parametrize("why", ["large", "elsewhere", "strided", "type"])
def test_what_is_not_ordinary_has_memory_of_its_own(driver, monkeypatch, why):
    recorded = []
    event = SimpleNamespace(record=recorded.append, synchronize=lambda: None)
    monkeypatch.setattr(torch.cuda, "Event", lambda: event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: ("stream of", device.index))
    source = np.arange(SLOT_BYTES // 8 + 1 if why == "large" else 8)
    if why == "elsewhere":
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    if why == "strided":
        source = source[::2]
    if why == "type":
        source = source.astype("int16")
    assert (AsyncCopy(there(source)).numpy() == source).all()
    assert driver.events == 0
    # By the stream of its own device, whatever the current one is.
    assert recorded == [("stream of", 0)]


def test_a_seat_is_not_lost_by_an_error(driver, monkeypatch):
    monkeypatch.setattr(driver, "cuEventRecord", lambda *a: 7)
    monkeypatch.setattr(
        "lloydia.backends.cuda.runtime.driver.reason", lambda failed: f"number {failed}"
    )
    with pytest.raises(RuntimeError, match="failed to record an event"):
        AsyncCopy(there(np.arange(8)))
    gc.collect()
    assert [slot.taken for slot in async_copy._free[0]] == [True]


def test_an_error_is_named(driver, monkeypatch):
    monkeypatch.setattr(driver, "cuMemcpyDtoHAsync_v2", lambda *a: 7)
    monkeypatch.setattr(
        "lloydia.backends.cuda.runtime.driver.reason", lambda failed: f"number {failed}"
    )
    with pytest.raises(RuntimeError, match="failed to copy to the host: number 7"):
        AsyncCopy(there(np.arange(8)))


def test_a_tensor_on_the_host_is_copied_at_once():
    source = torch.arange(6).view(3, 2)
    one = AsyncCopy(source, 1, 3)
    source.zero_()
    assert one.numpy().tolist() == [[2, 3], [4, 5]]
