"""Which kernels are compiled, rather than loaded from disk, while a block of code runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["compiled_for_cpu", "compiled_for_gpu"]


@contextmanager
def compiled_for_cpu() -> Iterator[Callable[[], list[str]]]:
    """Observe the CPU engine; what is returned gives the names of the kernels, and forgets them.

    A kernel for several types is compiled several times, and is listed as often.
    """
    from numba.core import event

    from lloydia.backends.cpu.runtime.kernel_cache import Cache

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            # Functions that kernels call are compiled as parts of them and have no cache.
            dispatcher = event.data["dispatcher"]
            if isinstance(dispatcher._cache, Cache):
                names.append(dispatcher.py_func.__name__)

        def on_end(self, event: Any) -> None:
            pass

    names: list[str] = []
    with event.install_listener("numba:compile", Listener()):
        yield lambda: taken(names)


@contextmanager
def compiled_for_gpu() -> Iterator[Callable[[], list[str]]]:
    """Observe the GPU engine, in the same way."""
    import triton

    knobs = triton.knobs.compilation
    before, names = knobs.listener, []

    def listen(*, src: Any, metadata: Any, cache_hit: bool, **others: Any) -> None:
        if not cache_hit:
            names.append(metadata["name"])
        if before is not None:
            before(src=src, metadata=metadata, cache_hit=cache_hit, **others)

    knobs.listener = listen
    try:
        yield lambda: taken(names)
    finally:
        knobs.listener = before


def taken(names: list[str]) -> list[str]:
    """Return a copy of a list, and empty the list."""
    copy = names.copy()
    names.clear()
    return copy
