"""`lloydia info`: what it prints, with and without a shape, and the shapes that it refuses."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import lloydia
from lloydia.backends.cpu.engine import CPU


def test_versions_devices_and_caches(run):
    ran = run("info", "--json")
    assert (ran.status, ran.err) == (0, "")
    facts = json.loads(ran.out)
    assert facts["versions"]["lloydia"] == lloydia.__version__
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["cpu"]["threads"] >= 1
    assert {"Numba"} <= {one["kernels"] for one in facts["caches"]} <= {"Numba", "Triton"}
    assert "cpu_choices" not in facts
    text = run("info").out
    for word in ("Versions", f"lloydia       {lloydia.__version__}", "GPUs", "threads"):
        assert word in text


@pytest.mark.parametrize(
    ("capability", "scores"), [("9.0", "matmul.hopper_scan"), ("8.0", "matmul.resident_scan")]
)
def test_kernels_for_a_gpu_that_is_not_there(run, capability, scores):
    pytest.importorskip("triton")
    arguments = ("info", "--shape", "1000000,64,256", "--capability", capability)
    ran = run(*arguments, "--json")
    assert (ran.status, ran.err) == (0, "")
    facts = json.loads(ran.out)
    found = {one["stage"]: one["choice"] for one in facts["gpu_choices"]}
    assert facts["gpu_capability"] == capability
    assert found["scores"] == scores
    assert found["sums of clusters"] == "update.table_sums"
    text = run(*arguments).out
    assert f"On a GPU of compute capability {capability}\n  run: matmul\n" in text
    assert f"  scores: {scores}\n    " in text


def test_algorithms_on_the_processor(run):
    ran = run("info", "--shape", "100000000,2,100", "--json")
    found = json.loads(ran.out)["cpu_choices"]
    assert [one["choice"] for one in found] == ["filtering"]
    assert all(one["why"].endswith(".") for one in found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(100_000, 3, 16), (200_000, 300, 1000), (100_000, 300, 5000)])
def test_algorithms_are_those_that_a_run_chooses(run, shape, dtype):
    n, d, k = shape
    engine = CPU(np.broadcast_to(np.zeros((1, d), dtype), (n, d)), None, 1)
    engine.start(np.zeros((k, d), dtype), "auto", max_iter=300)
    ran = run("info", "--shape", f"{n},{d},{k}", "--dtype", dtype, "--json")
    found = [one["choice"] for one in json.loads(ran.out)["cpu_choices"]]
    assert found == [engine.run.auto.using, *engine.run.auto.others]


def test_without_pytorch(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in ("dispatch", "runtime.hopper"):
        monkeypatch.delitem(sys.modules, f"lloydia.backends.cuda.{name}", raising=False)
    ran = run("info", "--shape", "1000,64,8")
    assert (ran.status, ran.err) == (0, "")
    assert "The GPU engine needs PyTorch and Triton: pip install torch triton." in ran.out


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--shape", "1000,64", "'1000,64' is not ROWS,FEATURES,CLUSTERS"),
        ("--shape", "10,64,256", "256 clusters of 10 rows: there are at most as many clusters as"),
        ("--shape", "1000,0,3", "has 0 features; at least one is needed"),
        ("--shape", "1000,x,3", "x"),
        ("--capability", "nine", "'nine' is not a compute capability, such as 9.0"),
        ("--capability", "9.0", "needs a shape to choose kernels for: add --shape."),
    ],
)
def test_what_is_no_shape_or_capability(run, option, value, said):
    ran = run("info", option, value)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
