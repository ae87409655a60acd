from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def small_floors(monkeypatch):
    monkeypatch.setattr("lloydia.bench.floors.LARGE", 1 << 16)
    monkeypatch.setattr("lloydia.bench.floors.ORDER", 64)


@pytest.mark.slow
def test_a_tiny_run_as_json_and_its_report(run, folder):
    ran = run(
        *("bench", "peers", "--cases", "iris", "--peers", "scikit-learn", "--threads", 1),
        *("--rounds", 1, "--json", "--out", folder / "kept"),
    )
    assert ran.status == 0
    rows = json.loads(ran.out)["rows"]
    assert {row["peer"] for row in rows} == {
        *("Lloydia auto", "scikit-learn lloyd", "scikit-learn elkan"),
    }
    assert all(row["status"] == "ok" for row in rows)
    (lines,) = (folder / "kept").glob("*/peers.jsonl")
    assert len(lines.read_text().splitlines()) == len(rows)
    ran = run("bench", "report", lines, "--out", folder / "report")
    assert ran.status == 0
    assert (folder / "report" / "peers.md").exists()


@pytest.mark.slow
def test_a_table(run):
    ran = run(
        *("bench", "auto", "--cases", "iris", "--threads", 1, "--rounds", 1, "--quick"),
    )
    assert ran.status == 0
    assert "auto compared with every algorithm" in ran.out
    assert "hamerly" in ran.out


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("peers --cases iriss", "There is no case 'iriss'"),
        ("peers --peers sklearn", "There is no library 'sklearn'"),
        ("peers --mode fast", "--mode"),
        ("peers --threads 0", "--threads"),
        ("peers --quick --save", "--quick"),
        ("peers --mode profile", "--mode profile needs --device cuda"),
        ("peers --device tpu", "--device"),
        ("seeding --cases iris", "There is no case 'iris'"),
        ("peers iris", "bench peers takes only options"),
        ("report none.jsonl", "no such file: none.jsonl"),
    ],
)
def test_bad_input_is_one_sentence(run, arguments, what):
    ran = run("bench", *arguments.split())
    assert ran.status == 2
    assert what in ran.err
    assert ran.err.count("\n") == 1


def test_a_peer_asked_for_by_name_must_be_there(run, monkeypatch):
    monkeypatch.setattr("lloydia.bench.peers.Peer.version", lambda self: None)
    ran = run("bench", "peers", "--peers", "FAISS")
    assert ran.status == 2
    assert ran.err == "lloydia: FAISS is not installed; pip install faiss-cpu.\n"


@pytest.mark.parametrize("command", ["", "peers", "seeding", "auto", "report"])
def test_help_shows_an_example(run, command):
    ran = run("bench", *command.split(), "--help")
    assert ran.status == 0
    assert "Example: lloydia bench" in ran.out


def test_no_gpu_is_one_sentence(run, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    ran = run("bench", "peers", "--device", "cuda")
    assert ran.status == 2
    assert ran.err == "lloydia: --device cuda needs an NVIDIA GPU, and PyTorch sees none here.\n"


def test_no_torch_is_one_sentence(run, monkeypatch):
    monkeypatch.setattr("lloydia.cli.bench.find_spec", lambda name: None)
    ran = run("bench", "peers", "--device", "cuda")
    assert ran.status == 2
    assert ran.err == "lloydia: --device cuda needs PyTorch: pip install torch triton.\n"


def test_on_a_device(run, monkeypatch, folder):
    pytest.importorskip("torch")
    from lloydia.bench.device import clock
    from lloydia.bench.device import run as runs

    monkeypatch.setattr(clock, "LARGE", 1 << 12)
    monkeypatch.setattr(clock, "ORDER", 32)
    measure = runs.run
    monkeypatch.setattr(runs, "device_name", lambda device: "A GPU")
    monkeypatch.setattr(
        runs, "run", lambda *some, device, **more: measure(*some, device="cpu", **more)
    )
    few = ("--cases", "256,2,16", "--peers", "PyTorch", "--rounds", 2)
    ran = run("bench", "peers", "--device", "cuda", *few, "--out", folder / "kept")
    assert ran.status == 0
    assert ran.out.split("\n")[0].strip() == "One iteration"
    assert "Whole fits" in ran.out
    ran = run("bench", "report", folder / "kept" / "a-gpu" / "peers.jsonl")
    assert ran.status == 0
    ran = run("bench", "peers", "--device", "cuda", *few, "--mode", "profile", "--json")
    assert {row["mode"] for row in json.loads(ran.out)["rows"]} == {"profile"}
