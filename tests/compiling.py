"""Kernels compiled where there is no GPU, in a process of their own: this one interprets them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

compiles = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="Triton has its compilers for x86-64"
)


def said_by(code: str, folder: Path) -> str:
    """Return what Python code prints where kernels are not interpreted, and cached in a folder."""
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
