"""What is queued again is what Triton would queue."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from triton.compiler import CompiledKernel

from lloydia.backends.cuda.runtime import launching
from lloydia.backends.cuda.runtime.launching import Launch


def test_a_kernel_is_queued_as_triton_queues_it():
    seen = []
    compiled = SimpleNamespace(
        run=lambda *args: seen.append(args),
        function=11,
        packed_metadata=(4, 1, 0),
        launch_metadata=lambda grid, stream, *args: None,
        _init_handles=lambda: None,
    )
    rows, weights = torch.zeros(8), torch.zeros(8)
    args = (rows, 8, weights[4:], None, 0.5, 64)
    CompiledKernel.__getitem__(compiled, (3, 2, 1))(*args, stream=7)
    places = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in args]
    Launch(compiled, (3, 2, 1), places, args).queue(7)
    theirs, ours = seen
    # Tensors come as their addresses, and Triton's hooks are not called.
    assert ours == (*theirs[:6], None, None, None, *places)
    assert places == [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in theirs[9:]]


def test_a_kernel_is_not_queued_on_another_device_than_its_arguments(monkeypatch):
    monkeypatch.setattr(launching, "INTERPRETED", False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    # What else is a tensor here has no GPU to be on.
    monkeypatch.setattr(torch, "Tensor", SimpleNamespace)
    there = SimpleNamespace(device=torch.device("cuda", 1), dtype=torch.int32, data_ptr=lambda: 64)
    with pytest.raises(RuntimeError, match="run on cuda:0, and its arguments are on cuda:1"):
        launching.launch(None, (1,), there)
    with pytest.raises(RuntimeError, match="run on cuda:0, and its arguments are on cuda:1"):
        launching.launch_by_key(None, "a key", (1, 1, 1), there)


def test_shared_memory_is_shared_out_once_a_kernel_by_the_part_that_it_needs(monkeypatch):
    monkeypatch.setattr(launching, "INTERPRETED", False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch, "Tensor", SimpleNamespace)
    monkeypatch.setattr(launching, "stream_of", lambda device: 3)
    monkeypatch.setattr(launching, "shared_memory", lambda device: 1000)
    monkeypatch.setattr(launching, "_found", {})
    told = []
    monkeypatch.setattr(launching, "prefer_shared", lambda *args: told.append(args))
    rows = SimpleNamespace(device=torch.device("cuda", 0), dtype=torch.int32, data_ptr=lambda: 64)

    class Kernel:
        arg_names = ("X",)

        def __init__(self, function):
            self.function = function

        def __getitem__(self, grid):
            queue = lambda *args: None  # noqa: E731
            return lambda *args: SimpleNamespace(
                function=self.function, run=queue, packed_metadata=()
            )

    # Rounded up; a program that needs more than there is takes all.
    kernels = [Kernel(i) for i in range(4)]
    for kernel, shared in zip(kernels, (161, 1000, 1001, None)):
        for _ in range(2):
            launching.launch(kernel, (1,), rows, shared=shared)
    assert told == [(0, 17), (1, 100), (2, 100)]
