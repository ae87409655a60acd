"""What the driver is given, seen by a function that stands for the driver's."""

from __future__ import annotations

import struct
import threading
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_int32,
    c_int64,
    c_uint8,
    c_uint32,
    c_void_p,
    cast,
    sizeof,
)
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lloydia.backends.cuda.runtime import driver as drivers
from lloydia.backends.cuda.runtime import launch_configs, launch_loop
from lloydia.backends.cuda.runtime.launch_configs import (
    LaunchConfigs,
    LaunchList,
    configs_of,
    joined,
)
from lloydia.backends.cuda.runtime.launching import Launch
from lloydia.backends.cuda.runtime.loaded_kernels import LoadedKernel


class Attribute(Structure):
    """A CUlaunchAttribute: which, and the first of its values."""

    _fields_ = ("id", c_uint32), ("pad", c_uint32), ("value", c_int32), ("more", c_uint8 * 60)


class Config(Structure):
    """A CUlaunchConfig."""

    _fields_ = (
        ("shape", c_uint32 * 6), ("memory", c_uint32), ("stream", c_void_p),
        ("attributes", POINTER(Attribute)), ("count", c_uint32),
    )  # fmt: skip


DRIVER = CFUNCTYPE(c_int32, POINTER(Config), c_int64, c_int64, c_int64)


@pytest.fixture
def driver(monkeypatch):
    """Return what is launched: how, what, its shape, memory and stream, and six parameters."""
    seen = []

    @DRIVER
    def launch(config, kernel, at, nothing):
        about = config[0]
        assert not nothing
        assert about.count == about.attributes[0].value == 1
        places = np.ctypeslib.as_array(cast(at, POINTER(c_int64)), (6,))
        values = [cast(int(place), POINTER(c_int64))[0] for place in places]
        how, shape = about.attributes[0].id, [*about.shape]
        seen.append((how, kernel, shape, about.memory, about.stream, values))
        return 7 if kernel == 13 else 0

    functions = {launch_configs.LAUNCH: launch}
    monkeypatch.setattr(
        launch_configs, "function", lambda name: cast(functions[name], c_void_p).value
    )
    monkeypatch.setattr(drivers, "driver", lambda: Contexts(seen=[]))
    monkeypatch.setattr(drivers, "_here", threading.local())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    return seen


class Contexts:
    """The driver's part that knows which context a thread is in."""

    def __init__(self, seen, failing=""):
        self.seen, self.failing, self.here = seen, failing, threading.local()

    def cuCtxGetCurrent(self, context):
        context._obj.value = getattr(self.here, "context", None)
        return 0

    def cuDeviceGet(self, device, number):
        device._obj.value = number + 100
        return 5 if self.failing else 0

    def cuDevicePrimaryCtxRetain(self, context, device):
        context._obj.value = device.value + 1000
        return 0

    def cuCtxSetCurrent(self, context):
        self.here.context = context.value
        self.seen.append(context.value)
        return 0


def launch(kernel=11, grid=(3, 2, 1), places=(), kinds=(), ptx="", **about):
    plain = {
        "launch_cooperative_grid": False, "launch_pdl": False, "num_ctas": 1, "num_warps": 4,
        "shared": 96, "global_scratch_size": 0, "profile_scratch_size": 0,
    }  # fmt: skip
    compiled = SimpleNamespace(
        metadata=SimpleNamespace(**plain | about),
        src=SimpleNamespace(signature=dict(enumerate(kinds))),
        asm={"ptx": ptx},
    )
    return Launch(LoadedKernel(compiled, kernel), grid, places, ())


PLACES = (1 << 40, -5, True, 64, 0.25, None, -(1 << 50))
KINDS = ("*fp32", "i32", "u1", "constexpr", "fp32", "*i64", "i64")


def test_the_driver_gets_what_it_wants(driver):
    configs_of([launch(places=PLACES, kinds=KINDS)]).queue(77)
    ((how, kernel, shape, memory, stream, values),) = driver
    assert (how, kernel, memory, stream) == (launch_configs.IN_ORDER, 11, 96, 77)
    assert shape == [3, 2, 1, 128, 1, 1]
    (quarter,) = struct.unpack("<i", struct.pack("<f", 0.25))
    assert values == [1 << 40, -5, 1, quarter, 0, -(1 << 50)]


def test_what_triton_adds_is_nothing(driver):
    every = [launch(places=PLACES[:4], kinds=KINDS[:4]), launch(places=range(6), kinds=["i32"] * 6)]
    configs_of(every).queue(77)
    assert [values for *_, values in driver] == [[1 << 40, -5, 1, 0, 0, 0], [*range(6)]]


def test_float64_is_itself():
    found = configs_of([launch(places=(-0.1,), kinds=("fp64",), grid=(0, 1, 1))])
    assert found.values.view(np.float64)[0] == -0.1


def test_all_of_it_again_and_again(driver):
    numbers = [launch(kernel, places=range(6), kinds=["i32"] * 6) for kernel in (1, 2)]
    configs_of(numbers).queue(5, times=3)
    assert [kernel for _, kernel, *_ in driver] == [1, 2] * 3
    assert all(values == [*range(6)] for *_, values in driver)


def test_programs_that_are_there_at_a_time(driver):
    two = launch(places=range(6), kinds=["i32"] * 6, launch_cooperative_grid=True)
    configs_of([two]).queue(5)
    assert [how for how, *_ in driver] == [launch_configs.COOPERATIVE]


def test_programs_that_wait_by_themselves(driver):
    waits = ".visible .entry f() {\n  griddepcontrol.wait;\n  ret;\n}"
    each = [
        launch(kernel, places=range(6), kinds=["i32"] * 6, ptx=ptx)
        for kernel, ptx in enumerate((waits, "griddepcontrol.launch_dependents;", waits))
    ]
    configs_of(each).queue(5)
    assert [how for how, *_ in driver] == [
        launch_configs.EARLY,
        launch_configs.IN_ORDER,
        launch_configs.EARLY,
    ]


def test_the_structures_are_the_drivers():
    assert sizeof(Config) == 8 * launch_loop.CONFIG == 56
    assert sizeof(Attribute) == 8 * launch_loop.ATTRIBUTE == 72


def test_no_programs_are_not_launched(driver):
    grids = (0, 1, 1), (1, 1, 1)
    every = [launch(i, grid, range(6), ["i32"] * 6) for i, grid in enumerate(grids, 1)]
    configs_of(every).queue(5)
    assert [kernel for _, kernel, *_ in driver] == [2]
    assert not configs_of([]).queue(5)


def test_launches_after_others(driver):
    first = configs_of([launch(1, places=range(6), kinds=["i32"] * 6)])
    second = configs_of([launch(2, places=range(6, 12), kinds=["i32"] * 6)])
    joined(first, second).queue(5, times=2)
    assert [kernel for _, kernel, *_ in driver] == [1, 2, 1, 2]
    assert [values[0] for *_, values in driver] == [0, 6, 0, 6]


def test_an_error_ends_it_and_is_named(driver, monkeypatch):
    monkeypatch.setattr(drivers, "reason", lambda failed: f"number {failed}")
    every = [launch(kernel, places=range(6), kinds=["i32"] * 6) for kernel in (1, 13, 2)]
    with pytest.raises(RuntimeError, match=r"failed to launch a kernel: number 7\."):
        configs_of(every).queue(5, times=4)
    assert [kernel for _, kernel, *_ in driver] == [1, 13]


@pytest.mark.parametrize(
    "about",
    [
        {"global_scratch_size": 8},
        {"profile_scratch_size": 8},
        {"launch_pdl": True},
        {"num_ctas": 2},
    ],
)
def test_triton_queues_what_wants_more_than_numbers(about):
    seen = []
    special = launch(places=(1,), kinds=("i32",), **about)
    special.kernel.compiled.run = lambda *args: seen.append(args[:4])
    special.kernel.compiled.packed_metadata = None
    found = configs_of([special])
    assert isinstance(found, LaunchList)
    joined(found, found).queue(5, times=2)
    assert seen == [(3, 2, 1, 5)] * 4


def test_types_that_are_no_numbers():
    assert isinstance(configs_of([launch(places=(1.0,), kinds=("fp16",))]), LaunchList)
    assert isinstance(configs_of([launch(places=(1.0,), kinds=("tensordesc<fp16>",))]), LaunchList)


def test_parameters_live_as_long_as_the_launches(driver):
    found = configs_of([launch(places=range(6), kinds=["i32"] * 6)])
    other = found.with_values(found.values + 1, torch.zeros(1))
    assert isinstance(other, LaunchConfigs)
    del found
    other.queue(5)
    assert driver[0][-1] == [*range(1, 7)]


def test_each_thread_enters_a_context_once(driver, monkeypatch):
    contexts = Contexts(seen=[])
    monkeypatch.setattr(drivers, "driver", lambda: contexts)
    one = configs_of([launch(places=range(6), kinds=["i32"] * 6)])

    def twice():
        one.queue(77)
        one.queue(77)

    for _ in range(3):
        thread = threading.Thread(target=twice)
        thread.start()
        thread.join()
    assert contexts.seen == [1102] * 3
    # One that is in a context stays there.
    contexts.here.context = 4
    twice()
    assert contexts.seen == [1102] * 3
    assert len(driver) == 8


def test_a_thread_without_a_context_launches_nothing(driver, monkeypatch):
    contexts = Contexts(seen=[], failing="cuDeviceGet")
    monkeypatch.setattr(drivers, "driver", lambda: contexts)
    monkeypatch.setattr(drivers, "reason", lambda failed: f"number {failed}")
    with pytest.raises(RuntimeError, match="failed to name a device: number 5"):
        configs_of([launch(places=range(6), kinds=["i32"] * 6)]).queue(77)
    assert driver == []
