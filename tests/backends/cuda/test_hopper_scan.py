"""The kernel in Gluon compiles where there is no GPU; `tests/gpu` has what it says."""

from __future__ import annotations

import re

import pytest

from compiling import compiles, said_by
from lloydia.backends.cuda.hopper_scan import MEMORY, OWN, RESIDENT, tiling_of

COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon._runtime import GluonASTSource

from lloydia.backends.cuda.hopper_scan import hopper_kernel

constants = {"WIDTH": WIDTH, "COLUMNS": COLUMNS, "STAGES": STAGES}
types = {
    "n": "i32", "unnamed": "i32", "numbers": "*fp64", "found": "*i64", "flow": "*i32",
}
names = hopper_kernel.arg_names
POINTERS = {n for n in names if n not in constants and types.get(n) != "i32"}
source = GluonASTSource(
    fn=hopper_kernel,
    signature={n: "constexpr" if n in constants else types.get(n, "*fp16") for n in names},
    constexprs={(i,): constants[n] for i, n in enumerate(names) if n in constants},
    attrs={(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n in POINTERS},
)
print(triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4}).asm["ptx"])
"""


@compiles
@pytest.mark.parametrize(("width", "columns"), [(16, 64), (64, 256)])
def test_products_are_waited_for_once(width, columns, tmp_path):
    _, stages = tiling_of(width, columns)
    code = f"WIDTH, COLUMNS, STAGES = {width}, {columns}, {stages}\n{COMPILE}"
    ptx = said_by(code, tmp_path)
    products = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16"
    # Of 16 features each, and the starts.
    assert ptx.count(products) == width // 16 + 1
    assert ptx.count("wgmma.wait_group.sync.aligned") == 1
    # Rows are waited for that the unit reads next, and it sees what threads have copied.
    assert re.search(rf"cp\.async\.wait_group\s+{stages - 2};", ptx)
    assert "fence.proxy.async" in ptx


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("columns", [64, 128, 256])
def test_no_more_programs_have_room_than_share_a_multiprocessor(width, columns):
    resident, stages = tiling_of(width, columns)
    taken = OWN + 2 * columns * (width + 16) + 2 * 64 * width * stages
    assert resident * taken <= MEMORY
    assert (resident + 1) * taken > MEMORY or resident == RESIDENT[columns]
