"""What a launch hands to the driver, and which form of a kernel it is."""

from __future__ import annotations

import inspect
import struct
import threading
import time
from ctypes import c_int64
from types import SimpleNamespace

import pytest
import torch
from triton.runtime.jit import JITFunction, KernelParam

from lloydia.backends.cuda.runtime import driver as drivers
from lloydia.backends.cuda.runtime import forms, launching, loaded_kernels
from lloydia.backends.cuda.runtime.compiling import Compilers
from lloydia.backends.cuda.runtime.launching import Launch
from lloydia.backends.cuda.runtime.loaded_kernels import LoadedKernel

KINDS = ("*fp32", "i32", "*i64", "constexpr", "fp32", "constexpr", "i64", "fp64")


def compiled(kinds=KINDS, **about):
    plain = {
        "launch_cooperative_grid": False, "launch_pdl": False, "num_ctas": 1, "num_warps": 4,
        "shared": 96, "global_scratch_size": 0, "profile_scratch_size": 0,
    }  # fmt: skip
    return SimpleNamespace(
        metadata=SimpleNamespace(**plain | about),
        src=SimpleNamespace(signature=dict(enumerate(kinds))),
        asm={"ptx": ""},
    )


@pytest.fixture
def driver(monkeypatch):
    """Return what the driver is handed: the function's name, numbers, and eight parameters."""
    seen = []

    def queued(name):
        def launch(function, *rest):
            places = (c_int64 * 8).from_address(rest[8])
            values = [c_int64.from_address(place).value for place in places]
            seen.append((name, function, rest[:8], values))
            return 1 if function == 13 else 0

        return launch

    names = "cuLaunchKernel", "cuLaunchCooperativeKernel"
    library = SimpleNamespace(**{name: queued(name) for name in names})
    monkeypatch.setattr(loaded_kernels, "driver", lambda: library)
    monkeypatch.setattr(loaded_kernels, "enter", lambda: None)
    return seen


@pytest.mark.parametrize("cooperative", [False, True])
def test_a_kernel_is_queued_by_the_driver(driver, cooperative):
    rows, weights = torch.zeros(8), torch.zeros(8)
    args = (rows, 8, weights[4:], None, 0.5, 64, -(1 << 40), 0.1)
    places = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
    kernel = LoadedKernel(compiled(launch_cooperative_grid=cooperative), 11)
    Launch(kernel, (3, 2, 1), places, args).queue(7)
    ((name, function, shape, values),) = driver
    assert name == ("cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel")
    assert (function, shape) == (11, (3, 2, 1, 128, 1, 1, 96, 7))
    (half,) = struct.unpack("<i", struct.pack("<f", 0.5))
    (tenth,) = struct.unpack("<q", struct.pack("<d", 0.1))
    # Two parameters that Triton adds follow.
    expected = [rows.data_ptr(), 8, weights[4:].data_ptr(), half, -(1 << 40), tenth, 0, 0]
    assert values == expected


def test_a_launch_without_programs_queues_nothing(driver):
    Launch(LoadedKernel(compiled(("i32",) * 6), 11), (0, 1, 1), range(6), ()).queue(7)
    assert driver == []


def test_a_refused_launch_is_an_error(driver, monkeypatch):
    monkeypatch.setattr(drivers, "reason", lambda failed: "a reason")
    with pytest.raises(RuntimeError, match=r"failed to launch a kernel: a reason\."):
        Launch(LoadedKernel(compiled(("i32",) * 6), 13), (1, 1, 1), range(6), ()).queue(7)


def on_gpu(number, address=64):
    """Return what is a tensor on a GPU, to these tests."""
    device = torch.device("cuda", number)
    return SimpleNamespace(device=device, dtype=torch.int32, data_ptr=lambda: address)


@pytest.fixture
def gpu(monkeypatch):
    """Have GPU 0 be the current device."""
    monkeypatch.setattr(launching, "INTERPRETED", False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    # What else is a tensor here has no GPU to be on.
    monkeypatch.setattr(torch, "Tensor", SimpleNamespace)
    monkeypatch.setattr(launching, "stream_of", lambda device: 3)
    monkeypatch.setattr(launching, "shared_memory", lambda device: 1000)
    monkeypatch.setattr(forms, "_found", {})


class Kernel:
    arg_names, src = ("X", "n"), ""
    kwargs = dict.fromkeys(launching.SAME)

    @staticmethod
    def fn(X, n):
        pass


def test_a_kernel_is_not_queued_on_another_device_than_its_arguments(gpu):
    with pytest.raises(
        RuntimeError, match="current device is cuda:0, and the kernel's arguments are on cuda:1"
    ):
        launching.launch(Kernel(), (1,), on_gpu(1))
    with pytest.raises(
        RuntimeError, match="current device is cuda:0, and the kernel's arguments are on cuda:1"
    ):
        launching.launch(None, (1,), on_gpu(1), key="a key")


def test_shared_memory_is_shared_out_once_a_kernel_by_the_part_that_it_needs(
    gpu, driver, monkeypatch
):
    told = []
    monkeypatch.setattr(forms, "prefer_shared", lambda *args: told.append(args))
    numbers = {}

    def compile_it(kernel, args, options, device):
        number = numbers.setdefault(kernel, len(numbers))
        return LoadedKernel(compiled(("*i32", *("constexpr",) * 3, *("i32",) * 5)), number)

    monkeypatch.setattr(forms, "compiled_now", compile_it)
    monkeypatch.setattr(LoadedKernel, "queue", lambda *args: None)
    # Rounded up; a program that needs more than there is takes all.
    kernels = [Kernel() for _ in range(4)]
    for kernel, shared in zip(kernels, (161, 1000, 1001, None)):
        for _ in range(2):
            launching.launch(kernel, (1,), on_gpu(0), 17, shared=shared)
    assert told == [(0, 17), (1, 100), (2, 100)]


def forms_of(kernel, launches):
    """Return how many forms of a kernel some launches need."""
    with forms.rehearsal() as found:
        for args in launches:
            launching.launch(kernel, (1,), *args)
    return len(found)


def strict_kernel():
    """Return a kernel that has one form for all addresses of X and all integers n of a size."""
    strict = JITFunction.__new__(JITFunction)

    def kernel(X, n):
        pass

    X, n = inspect.signature(kernel).parameters.values()
    strict.params = [KernelParam(0, X, False, True), KernelParam(1, n, True, False)]
    return strict


def test_forms_are_those_of_triton(gpu):
    some, others = on_gpu(0), on_gpu(0, address=72)
    launches = [(some, 1), (some, 16), (some, 17), (some, 1 << 40), (others, 17)]
    launches += [(some, 32), (some, 18), (some, (1 << 40) + 16)]
    # Each kernel is freed after its line: the next must not be taken for it.
    for _ in range(20):
        assert forms_of(Kernel(), launches) == 5
        # Whatever an integer is, but for its size, and wherever rows begin.
        assert forms_of(strict_kernel(), launches) == 2


def test_a_kernel_is_compiled_once_for_all_who_wait(gpu, monkeypatch):
    begun, compiling, numbers = threading.Event(), [], []

    def compile_it(kernel, args, options, device):
        compiling.append(threading.current_thread().name)
        assert begun.wait(10)
        return LoadedKernel(compiled(("*i32", "i32")), 5)

    monkeypatch.setattr(forms, "compiled_now", compile_it)
    monkeypatch.setattr(
        LoadedKernel, "queue", lambda kernel, *args: numbers.append(kernel.function)
    )
    monkeypatch.setattr(forms, "compilers", lambda: Compilers(2))
    kernel = Kernel()

    def rehearse():
        with forms.rehearsal() as found:
            launching.launch(kernel, (1,), on_gpu(0), 17)
        forms.compile_together(found, [0])
        begun.set()

    with forms.at_first(rehearse):
        for n in (17, 19):
            launching.launch(kernel, (1,), on_gpu(0), n)
    assert compiling == ["lloydia-compiler"]
    assert numbers == [5, 5]


def test_a_form_is_compiled_for_one_gpu_at_a_time(gpu, monkeypatch):
    working, most = [], []

    def compile_it(kernel, args, options, device):
        working.append(device)
        most.append(len(working))
        time.sleep(0.02)
        working.remove(device)
        return LoadedKernel(compiled(("*i32", "i32")), device)

    monkeypatch.setattr(forms, "compiled_now", compile_it)
    monkeypatch.setattr(forms, "compilers", lambda: Compilers(3))
    with forms.rehearsal() as found:
        launching.launch(Kernel(), (1,), on_gpu(0), 17)
    forms.compile_together(found, range(3))
    (form,) = found.values()
    assert [forms.loaded(form, device).function for device in range(3)] == [0, 1, 2]
    # The first one leaves on disk what the others load.
    assert most == [1, 1, 1]
