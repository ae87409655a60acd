"""How the CPU rungs are compiled: as the engine is, and anew when any rung changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lloydia.backends.cpu.runtime import compiled
from lloydia.backends.cpu.runtime.compiled import subroutine

__all__ = ["kernel", "subroutine"]

# Numba notices a change in a kernel's own file only, and rungs call functions of others.
FILES = sorted(Path(__file__).parent.glob("*.py"))
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in FILES)).hexdigest()[:12]


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function without fastmath, and cache the result on disk."""
    if function is None:
        return lambda function: kernel(function, **options)
    function.__qualname__ += f"-{DIGEST}"
    return compiled.kernel(function, **options)
