"""Recorded launches where there is no GPU: what a driver would be handed, an interpreter runs."""

from __future__ import annotations

import ctypes
import struct
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import torch

from lloydia.backends.cuda.runtime import launch_configs, launching, recording, relocation
from lloydia.backends.cuda.runtime.loaded_kernels import LoadedKernel

# Values of parameters are numbers of 64 bits: Python's, too, as the interpreter takes them.
NUMBERS = {int: "i64", bool: "i64", float: "fp64"}


def kind_of(x):
    if isinstance(x, torch.Tensor):
        return "*" + str(x.dtype).removeprefix("torch.")
    return NUMBERS.get(type(x), "constexpr")


def tensor_at(place, kind):
    """Return a tensor that begins there; a kernel goes as far as it likes."""
    there = np.ctypeslib.as_array((ctypes.c_uint8 * 16).from_address(place))
    return torch.from_numpy(there).view(getattr(torch, kind[1:]))


class Driver:
    """Runs kernels by number.

    Attributes
    ----------
    by_name, by_number : int
        Kernels that were launched the one way and the other.
    repeated : Counter
        How often each was launched by number.
    """

    def __init__(self):
        self.kernels = []
        self.by_name = self.by_number = 0
        self.repeated = Counter()

    def loaded(self, form, device):
        """Return what a launch by name loads."""
        kernel, _, args, options, _ = form
        kinds = [kind_of(x) for x in args]
        about = SimpleNamespace(
            launch_cooperative_grid=False, launch_pdl=False, num_ctas=1, num_warps=4, shared=0,
            global_scratch_size=0, profile_scratch_size=0,
        )  # fmt: skip
        compiled = SimpleNamespace(
            metadata=about, src=SimpleNamespace(signature=dict(enumerate(kinds))), asm={"ptx": ""}
        )  # fmt: skip
        self.kernels.append((kernel, args, kinds, options))
        return LoadedKernel(compiled, len(self.kernels) - 1)

    def launch(self, one):
        """Launch by name."""
        kernel, _, _, options = self.kernels[one.kernel.function]
        kernel[one.grid](*one.arguments, **options)
        self.by_name += 1

    def queue(self, some, times):
        """Launch some kernels by number."""
        for _ in range(times):
            for _, number, *grid, _, _, first in some.configs.table.tolist():
                kernel, args, kinds, options = self.kernels[number]
                values = iter(some.values[first:].tolist())
                every = [
                    x if kind == "constexpr" else argument(next(values), kind)
                    for x, kind in zip(args, kinds)
                ]
                self.by_number += 1
                self.repeated[kernel.fn.__name__] += 1
                kernel[tuple(grid)](*every, **options)


def argument(value, kind):
    if kind == "fp64":
        return struct.unpack("<d", struct.pack("<q", value))[0]
    return tensor_at(value, kind) if kind[0] == "*" else value


def replay(monkeypatch):
    """Have launches recorded and repeated as on a GPU; return what launches."""
    driver, note = Driver(), launching.noting

    @contextmanager
    def noting():
        # Only recorded work is launched by number: what else there is runs as it always does.
        with monkeypatch.context() as patch, note() as launches:
            patch.setattr(launching, "INTERPRETED", False)
            # Tensors on the host have no number of a GPU.
            patch.setattr(torch.cuda, "current_device", lambda: None)
            patch.setattr(launching, "stream_of", lambda device: 0)
            patch.setattr(launching, "loaded", driver.loaded)
            patch.setattr(launching.Launch, "queue", lambda one, stream: driver.launch(one))
            yield launches

    for module in (relocation, recording):
        monkeypatch.setattr(module, "noting", noting)
        monkeypatch.setattr(module, "stream_of", lambda device: 0)
    monkeypatch.setattr(relocation, "_recorded", {})
    monkeypatch.setattr(recording, "INTERPRETED", False)
    monkeypatch.setattr(launch_configs, "function", lambda name: 0)
    monkeypatch.setattr(
        launch_configs.LaunchConfigs,
        "queue",
        lambda some, stream, times=1: driver.queue(some, times),
    )
    return driver
