from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from fake_peers import PEERS, TINY

from lloydia.bench import peers
from lloydia.bench.contest import QUICK
from lloydia.bench.run import run

OURS = "lloydia.bench.peers.ours"


@pytest.fixture
def measure(monkeypatch):
    """Return a function that runs a tiny case with ours (or without) and some fake peers."""
    here = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setattr("lloydia.bench.floors.LARGE", 1 << 16)
    monkeypatch.setattr("lloydia.bench.floors.ORDER", 64)
    # So few iterations take a moment, which others at work lengthen.
    monkeypatch.setattr("lloydia.bench.contest.TRIES", 50)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, here)))

    def measure(*names, mode="iterations", case=TINY, ours=True, probe=60.0):
        fakes = {peer.name: peer for peer in PEERS}
        contenders = peers.everyone([mode], [OURS]) if ours else {}
        contenders["fake_peers"] = [fakes[name] for name in names]
        patience = replace(QUICK, rounds=2, turn=0.0, probe=probe)
        told = []
        (rows,) = run([case], [mode], contenders, threads=1, patience=patience, step=told.append)
        assert told
        return {row["peer"]: row for row in rows}

    return measure
