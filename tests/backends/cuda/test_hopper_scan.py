"""The kernel in Gluon compiles where there is no GPU; `tests/gpu` has what it says."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon._runtime import GluonASTSource

from lloydia.backends.cuda.hopper_scan import hopper_kernel

constants = {"WIDTH": WIDTH, "COLUMNS": COLUMNS, "STAGES": 3}
types = {
    "n": "i32", "unnamed": "i32", "numbers": "*fp64", "found": "*i32", "flow": "*i32",
    "least_ptr": "*fp32", "rival_ptr": "*fp32",
}
names = hopper_kernel.arg_names
source = GluonASTSource(
    fn=hopper_kernel,
    signature={n: "constexpr" if n in constants else types.get(n, "*fp16") for n in names},
    constexprs={(i,): constants[n] for i, n in enumerate(names) if n in constants},
    attrs={(i,): [["tt.divisibility", 16]] for i in range(len(names) - len(constants))},
)
options = {"num_warps": 4, "maxnreg": 255}
print(triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"])
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="Triton has its compilers for x86-64")
@pytest.mark.parametrize(("width", "columns"), [(16, 64), (64, 256)])
def test_products_are_waited_for_once(width, columns, tmp_path):
    code = f"WIDTH, COLUMNS = {width}, {columns}\n{COMPILE}"
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    products = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16"
    # Of 16 features each, and the starts.
    assert done.stdout.count(products) == width // 16 + 1
    assert done.stdout.count("wgmma.wait_group.sync.aligned") == 1
