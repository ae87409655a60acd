"""The kernel in Gluon compiles where there is no GPU; `tests/gpu` has what it says."""

from __future__ import annotations

import re

import pytest

from compiling import compiles, said_by
from lloydia.backends.cuda.matmul.hopper_scan import MEMORY, OWN, RESIDENT, Tiling
from lloydia.backends.cuda.matmul.packed_top_two import slots_of

COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon._runtime import GluonASTSource

from lloydia.backends.cuda.matmul.hopper_scan import hopper_kernel

constants = {
    "WIDTH": WIDTH, "COLUMNS": COLUMNS, "SLOTS": SLOTS, "STAGES": STAGES, "GROUPS": GROUPS,
    "REGISTERS": REGISTERS,
}
types = {
    "n": "i32", "raised": "i32", "numbers": "*fp64", "found": "*i64", "run_state": "*i32",
}
names = hopper_kernel.arg_names
POINTERS = {n for n in names if n not in constants and types.get(n) != "i32"}
source = GluonASTSource(
    fn=hopper_kernel,
    signature={n: "constexpr" if n in constants else types.get(n, "*fp16") for n in names},
    constexprs={(i,): constants[n] for i, n in enumerate(names) if n in constants},
    attrs={(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n in POINTERS},
)
options = {"num_warps": 4, "maxnreg": REGISTERS}
print(triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"])
"""


@compiles
@pytest.mark.parametrize(("width", "columns"), [(16, 64), (64, 256)])
def test_products_are_waited_for_once(width, columns, tmp_path):
    cut = Tiling.of(width, columns)
    code = f"WIDTH, COLUMNS, SLOTS, STAGES, GROUPS, REGISTERS = {width}, {columns}, "
    code += f"{slots_of(columns)}, {cut.stages}, {cut.groups}, {cut.registers}\n{COMPILE}"
    ptx = said_by(code, tmp_path)
    products = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16"
    # Of 16 features each, and the starts.
    assert ptx.count(products) == cut.groups * (width // 16 + 1)
    assert ptx.count("wgmma.wait_group.sync.aligned") == cut.groups
    # Each group hands its turn on between asking for its products and waiting for them.
    events = r"wgmma\.mma_async|mbarrier\.arrive\.|mbarrier\.try_wait|wgmma\.wait_group"
    once = {"wgmma.mma_async": "m", "mbarrier.arrive.": "a", "mbarrier.try_wait": "t"}
    order = "".join(once.get(event, "w") for event in re.findall(events, ptx))
    turns = ("t", "a") if cut.groups > 1 else ("", "")
    alone = turns[0] + "m" * (width // 16 + 1) + turns[1] + "w"
    assert alone * cut.groups in order
    # All threads see to it that the unit sees the rows it reads next, and wait for each other: of
    # the first block before its products, of any next one before those of the one before are done.
    events = r"cp\.async\.wait_group\s+\d+|fence\.proxy\.async|bar\.sync|mma_async|wgmma\.wait"
    order = " ".join(re.findall(events, ptx))
    ready = r"cp\.async\.wait_group\s+{} (bar\.sync )*fence\.proxy\.async (bar\.sync )+"
    first, coming = ready.format(cut.stages - 2), ready.format(cut.stages - 3)
    products = r"((fence\.proxy\.async |bar\.sync )*mma_async )+"
    loop = rf"{first}{products}{coming}(bar\.sync )*wgmma\.wait"
    assert len(re.findall(loop, order)) == cut.groups


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("columns", [64, 128, 256])
def test_no_more_programs_have_room_than_share_a_multiprocessor(width, columns):
    cut = Tiling.of(width, columns)
    taken = OWN + 2 * columns * (width + 16) + cut.groups * 64 * (2 * width * cut.stages + 32)
    assert cut.resident * taken <= MEMORY
    if cut.groups > 1:  # Registers leave room for one program.
        assert 65536 // (cut.groups * 128 * cut.registers) == cut.resident == 1
    else:
        assert (cut.resident + 1) * taken > MEMORY or cut.resident == RESIDENT[columns]
