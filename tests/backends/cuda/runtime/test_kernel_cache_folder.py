"""Triton's folder of compiled kernels cannot be written: kernels are compiled nevertheless."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from compiling import compiles

CODE = """
import warnings
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

from lloydia.backends.cuda.runtime import kernel_cache

@triton.jit
def double(x, n: tl.constexpr):
    at = x + tl.arange(0, n)
    tl.store(at, 2 * tl.load(at))

def compile():
    source = triton.compiler.ASTSource(double, {"x": "*fp32"}, {"n": 64})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32))

FILL
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    for _ in range(2):
        kernel_cache.make_writable()
print(len(found), *(str(one.message) for one in found))
print(len(compile().asm["cubin"]) > 100, len(compile().asm["ptx"]) > 100)
print(getattr(kernel_cache.Elsewhere, "folder", None))
"""
FULL = """
import resource
compile() if WARM else None
kernel_cache.ROOM, limit = 100_000, 50_000
kernel_cache.tempfile.gettempdir()
original = kernel_cache._write
def full(folder):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    original(folder)
kernel_cache._write = full
"""


def said(tmp_path, cache, fill=""):
    code = tmp_path / "code.py"
    code.write_text(CODE.replace("FILL", fill))
    environment = {**os.environ, "TRITON_CACHE_DIR": str(cache)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, str(code)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@compiles
def test_a_folder_that_can_be_written_is_used(tmp_path):
    told, compiled, elsewhere = said(tmp_path, tmp_path / "cache")
    assert (told, compiled, elsewhere) == ("0", "True True", "None")
    assert any((tmp_path / "cache").rglob("*.cubin"))


@compiles
@pytest.mark.parametrize("place", ["file/below"])
def test_a_folder_that_is_a_file(tmp_path, place):
    (tmp_path / "file").write_bytes(b"")
    told, compiled, elsewhere = said(tmp_path, tmp_path / place)
    assert told.startswith(f"1 compiled kernels in {tmp_path / place} cannot be written: ")
    assert "TRITON_CACHE_DIR" in told
    assert compiled == "True True"
    assert not os.path.exists(elsewhere)


@compiles
@pytest.mark.parametrize("warm", [True])
def test_a_full_disk(tmp_path, warm):
    pytest.importorskip("resource")
    told, compiled, _ = said(tmp_path, tmp_path / "cache", FULL.replace("WARM", str(warm)))
    assert told.startswith(f"1 compiled kernels in {tmp_path / 'cache'} cannot be written: file")
    assert compiled == "True True"
    assert any((tmp_path / "cache").rglob("*.cubin")) == warm
