"""The readers hold against each seed and some damage to it; ``run.py`` looks for more."""

from __future__ import annotations

import random
import zlib

import pytest

from fuzz.mutations import damaged
from fuzz.targets import TARGETS

# Of each seed.
TRIES = 40

CASES = [
    pytest.param(target, seed, id=f"{target.name}-{seed.name}")
    for target in TARGETS.values()
    for seed in sorted(target.seeds.iterdir())
]


@pytest.mark.parametrize(("target", "seed"), CASES)
def test_seed_and_damage(tmp_path, target, seed):
    data = seed.read_bytes()
    accepted = target(data, tmp_path)
    # The first word of a seed's name says which it is.
    assert accepted == seed.name.startswith("good")
    chance = random.Random(zlib.crc32(data))
    for _ in range(TRIES):
        target(damaged(data, chance), tmp_path)


def test_every_target_has_a_good_seed():
    for target in TARGETS.values():
        assert any(seed.name.startswith("good") for seed in target.seeds.iterdir())
