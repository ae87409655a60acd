"""Lists of the rows of a warp: the PTX that no interpreter runs, evaluated for all its threads."""

from __future__ import annotations

import numpy as np
import pytest

from lloydia.backends.cuda.device_functions.ptx.warp_lists import append_ptx, operands_of
from ptx import Thread

LANES = 32


class Lane(Thread):
    """A thread of a warp whose masks are known, for what a ballot returns."""

    def __init__(self, operands, memory, lane, masks):
        super().__init__(operands, {}, memory)
        self.values["%lanemask_lt"] = (1 << lane) - 1
        self.ballots = [sum(int(x != 0) << i for i, x in enumerate(column)) for column in masks.T]

    def do(self, parts, names):
        if parts[0] == "vote":
            assert names[2] == "-1"
            self.values[names[0]] = self.ballots[int(names[1].removeprefix("listed"))]
        elif parts[0] == "popc":
            self.values[names[0]] = self.get(names[1]).bit_count()
        elif parts[0] == "mul":
            self.values[names[0]] = self.get(names[1]) * self.get(names[2])
        elif parts[0] == "st":
            address = self.get(names[0][1:-1])
            assert address not in self.memories["global"]
            self.memories["global"][address] = self.get(names[1])
        else:
            super().do(parts, names)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.4, 1.0])
@pytest.mark.parametrize(("each", "count"), [(4, 3), (4, 1), (2, 2)])
def test_rows_of_a_warp_are_appended_without_gaps(each, count, share):
    rng = np.random.default_rng(each * count)
    masks = (rng.random((LANES, each)) < share).astype(int)
    values = rng.integers(0, 1 << 31, size=(count, LANES, each))
    end, lists, memory = 70, [1 << (20 + i) for i in range(count)], {}
    for lane in range(LANES):
        operands = [0] * each + [*masks[lane]] + [end] * each
        operands += [x for value in values for x in value[lane]]
        operands += [at for at in lists for _ in range(each)]
        operands = list(map(int, operands))
        assert len(operands) == len(operands_of(each, count).split(","))
        thread = Lane(operands, memory, lane, masks)
        thread.run(append_ptx(each, count))
        assert [thread.get(f"${e}") for e in range(each)] == [end + masks.sum()] * each
    places = range(end, end + masks.sum())
    found = [[memory.pop(at + 4 * place) for at in lists] for place in places]
    assert not memory
    assert sorted(map(tuple, found)) == sorted(map(tuple, values[:, masks > 0].T.tolist()))
