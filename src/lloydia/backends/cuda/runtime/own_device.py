"""The current device, on which kernels are launched: a method makes its own device current."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

import torch
from torch.cuda import current_device

from lloydia.backends.cuda.runtime.launching import place

__all__ = ["current", "on", "on_own_device"]

T = TypeVar("T", bound=type)

_HERE = nullcontext()


def current(device: torch.device) -> AbstractContextManager:
    """Return the context in which a device is the current one, as it usually is already."""
    if device.type != "cuda" or current_device() == device.index:
        return _HERE
    return torch.cuda.device(device)


def on(name: str) -> AbstractContextManager:
    """Return the context in which a device of this name is the current one."""
    return current(place(name))


def on_own_device(part: T) -> T:
    """Make the public methods of a class run on the GPU of its attribute `device`."""
    guarded_class: Any = part
    for name in dir(guarded_class):
        method = getattr(guarded_class, name)
        if isfunction(method) and not name.startswith("_"):
            setattr(guarded_class, name, _guarded(method))
    return part


def _guarded(method: Callable) -> Callable:
    @wraps(method)
    def on_its_device(self: Any, *args: Any, **options: Any) -> Any:
        with current(self.device):
            return method(self, *args, **options)

    return on_its_device
