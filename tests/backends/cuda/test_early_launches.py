"""Kernels that may begin before the launch ahead of theirs has ended wait for it first of all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lloydia.backends.cuda

# What asks nothing of memory but a program's own; and layouts, which are known when it is compiled.
HARMLESS = frozenset(
    ("BlockedLayout", "DotOperandLayout", "NVMMADistributedLayout", "NVMMASharedLayout", "arange",
     "broadcast_to", "cdiv", "constexpr", "empty_table", "full", "num_programs", "own_table",
     "program_id", "static_assert", "to", "zeros")
)  # fmt: skip


WAIT = "wait_for_previous_kernel"


def calls_of(node):
    """Give the names of what is called within, in the order of its calls."""
    for child in ast.iter_child_nodes(node):
        yield from calls_of(child)
    if isinstance(node, ast.Call):
        yield getattr(node.func, "attr", getattr(node.func, "id", ""))


def calls_in(function):
    return [name for statement in function.body for name in calls_of(statement)]


def kernels():
    """Return what each function of the engine that waits so calls, by its name."""
    found = {}
    for path in Path(lloydia.backends.cuda.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and WAIT in (calls := calls_in(node)):
                found[f"{path.stem}.{node.name}"] = calls
    return found


KERNELS = kernels()


def is_sound(calls):
    """Return whether nothing is asked of memory before the wait."""
    return set(calls[: calls.index(WAIT)]) <= HARMLESS


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_read_or_written_before_the_wait(name):
    assert is_sound(KERNELS[name]), KERNELS[name]


def test_it_would_be_seen():
    assert len(KERNELS) > 15
    wait, load = "    wait_for_previous_kernel()", "    x = tl.load(X)"
    late = ast.parse("\n".join(["def kernel(X):", load, wait])).body[0]
    assert not is_sound(calls_in(late))
    first = ast.parse("\n".join(["def kernel(X):", wait, load])).body[0]
    assert is_sound(calls_in(first))


def test_each_waits_before_any_branch():
    """In a branch that is not taken nobody would wait."""
    for path in Path(lloydia.backends.cuda.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or WAIT not in calls_in(node):
                continue
            for statement in node.body:
                if WAIT in calls_of(statement):
                    # The test of a branch is not in it.
                    inside = statement.test if isinstance(statement, ast.If) else statement
                    assert not isinstance(inside, (ast.For, ast.While, ast.With)), node.name
                    assert WAIT in calls_of(inside), node.name
                    break
