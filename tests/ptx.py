"""PTX that kernels have inline, evaluated for one thread: a few instructions of it.

PTX ISA, "Instruction Set".  Registers hold bits; memory is a dict from addresses to integers.
Declarations are ignored, and any name is a register: that is for compilers to check.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

__all__ = ["evaluate"]

WIDTHS = {"b32": 32, "s32": 32, "u32": 32, "b64": 64, "s64": 64, "u64": 64, "f64": 64}


def bits_of(x: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


def float_of(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def signed(bits: int, width: int) -> int:
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits


class Thread:
    """A thread that runs PTX with operands: integers, or floats, of which it takes the bits."""

    def __init__(self, operands: Sequence[int | float], shared: dict, memory: dict) -> None:
        self.values: dict[str, int] = {
            f"${i}": bits_of(x) if isinstance(x, float) else x for i, x in enumerate(operands)
        }
        self.memories = {"shared": shared, "global": memory}
        self.carry = 0

    def run(self, ptx: str) -> None:
        body = ptx.strip().removeprefix("{").removesuffix("}")
        body = re.sub(r"\.reg [^;]*;", "", body)
        lines = [x.strip() for x in re.sub(r"(\w+:)", r"\1;", body).split(";") if x.strip()]
        labels = {x[:-1]: i for i, x in enumerate(lines) if x.endswith(":")}
        at = 0
        while at < len(lines):
            guard, name, rest = re.fullmatch(r"(?:@(!?\w+) )?(\S+) ?(.*)", lines[at]).groups()  # type: ignore[union-attr]
            at += 1
            if name.endswith(":") or (guard and self.holds(guard) is False):
                continue
            if name == "bra":
                at = labels[rest]
            else:
                self.do(name.split("."), re.findall(r"\{.*?\}|\[.*?\]|[^,\s]+", rest))

    def holds(self, guard: str) -> bool:
        value = bool(self.values[guard.removeprefix("!")])
        return not value if guard.startswith("!") else value

    def get(self, name: str) -> int:
        if name.startswith("{"):
            low, high = name[1:-1].split(",")
            return (self.get(low.strip()) & 0xFFFFFFFF) | (self.get(high.strip()) << 32)
        if name.startswith("0d"):
            return int(name[2:], 16)
        if re.fullmatch(r"-?\d+|0x[0-9A-Fa-f]+", name):
            return int(name, 0)
        return self.values[name]

    def do(self, parts: list[str], names: list[str]) -> None:
        operation, kind = parts[0], parts[-1]
        width = WIDTHS[kind]
        mask = (1 << width) - 1
        if operation in ("atom", "red"):
            memory = self.memories["shared" if "shared" in parts else "global"]
            *to, place, value = names
            address = sum(map(self.get, place[1:-1].split("+")))
            before = memory.get(address, 0)
            memory[address] = (before + self.get(value)) & mask
            if to:
                self.values[to[0]] = before
            return
        to, *rest = names
        if operation == "setp":
            a, b = rest[:2]
            read = (lambda x: float_of(self.get(x))) if kind == "f64" else self.reader(kind)
            found = {"eq": read(a) == read(b), "ne": read(a) != read(b)}.get(parts[1])
            if found is None:
                found = {"ge": read(a) >= read(b), "lt": read(a) < read(b)}[parts[1]]
            self.values[to] = int(found or (parts[2] == "or" and bool(self.values[rest[2]])))
        elif kind == "f64":
            x = [float_of(self.get(name)) for name in rest]
            result = {
                "mov": lambda: x[0], "add": lambda: x[0] + x[1], "sub": lambda: x[0] - x[1],
                "mul": lambda: x[0] * x[1],
            }[operation]()  # fmt: skip
            self.values[to] = bits_of(result)
        else:
            self.values[to] = self.integer(operation, parts, rest, kind)

    def reader(self, kind: str):
        width = WIDTHS[kind]
        if kind.startswith("s"):
            return lambda name: signed(self.get(name), width)
        return lambda name: self.get(name) & ((1 << width) - 1)

    def integer(self, operation: str, parts: list[str], names: list[str], kind: str) -> int:
        """Return the bits of a result."""
        width, x = WIDTHS[kind], [self.reader(kind)(name) for name in names]
        if "wide" in parts:
            width *= 2
            x[2] = signed(self.get(names[2]), width)
        if operation in ("add", "addc", "sub", "subc"):
            sign = 1 if operation.startswith("add") else -1
            result = x[0] + sign * (x[1] + (self.carry if operation.endswith("c") else 0))
            if "cc" in parts:
                self.carry = int(not 0 <= result < 1 << width)
        else:
            result = {
                "mov": lambda: x[0], "neg": lambda: -x[0], "or": lambda: x[0] | x[1],
                "and": lambda: x[0] & x[1], "shl": lambda: x[0] << x[1],
                "mad": lambda: x[0] * x[1] + x[2],
            }[operation]()  # fmt: skip
        return result & ((1 << width) - 1)


def evaluate(
    ptx: str, operands: Sequence[int | float], shared: dict | None = None,
    memory: dict | None = None,
) -> None:  # fmt: skip
    """Run PTX; operands are in the order of their numbers, and memory is written to."""
    Thread(operands, {} if shared is None else shared, {} if memory is None else memory).run(ptx)
