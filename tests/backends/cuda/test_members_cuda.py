"""Parts of a cluster whose workers have GPUs, in Triton's interpreter: the bits of the CPU."""

from __future__ import annotations

import pytest
import torch

from lloydia.backends import choose
from lloydia.backends.cluster import partitions
from lloydia.backends.cluster.member import Member, Question, answer
from lloydia.backends.run_settings import RunSettings
from table import blobs, weights_of


def test_a_member_on_a_gpu_that_lost_its_state_finds_it_again(device):
    X, weights = blobs(90, 3, "float32"), weights_of("wide", 90)
    # One block has always been on the GPU; the other goes up.
    blocks = [torch.from_numpy(X[:40]).to(device), X[40:]]
    rows = partitions.take(blocks)
    assert [fact.dtype for fact in rows.facts] == ["float32", "float32"]
    digests = [fact.digest for fact in rows.facts]
    own = [weights[:40], weights[40:]]
    digests += [partitions.digest(w) for w in own]
    whole = choose("cpu", X, weights, 1)
    history = [
        ("set_grid", (whole.magnitudes(),)),
        ("start", (RunSettings(X[:4], "lloyd"),)),
        ("step", (X[4:8], False)),
    ]
    step = Question(9, 8, "step", adds=True)
    own_rows = {"cuda": rows, "auto": partitions.take([X[:40], X[40:]])}
    found = {
        kind: answer(Member(rows, own, digests, kind, 1), None, step, (X[8:12], True), history)
        for kind, rows in own_rows.items()
    }
    with pytest.raises(ValueError, match="Blocks of X are on GPUs"):
        answer(Member(rows, own, digests, "cpu", 1), None, step, (X[8:12], True), history)
    assert found["cuda"].n_changed == found["auto"].n_changed > 0
    assert (found["cuda"].sums == found["auto"].sums).all()
    assert found["cuda"].largest_cost == found["auto"].largest_cost
