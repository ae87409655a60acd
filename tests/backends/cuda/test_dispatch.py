"""The table of kernels: what is chosen for a shape, and that each choice is there."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch
import triton

from lloydia.backends.cuda import dispatch, options
from lloydia.backends.cuda.device_functions.run_state import SIZE
from lloydia.backends.cuda.dispatch import Kernels, Stage, Work, choices, chosen
from lloydia.backends.cuda.matmul.scan import TensorScan
from lloydia.backends.cuda.placement import place_rows
from lloydia.backends.cuda.runtime import hopper


def test_every_choice_names_modules_that_are_there():
    names = {name for kernels in Kernels if kernels is not Kernels.NONE
             for name in kernels.split(", ")}  # fmt: skip
    for name in names:
        assert find_spec(f"lloydia.backends.cuda.{name}"), name


def test_every_stage_ends_with_what_is_for_all():
    for stage, cases in dispatch.TABLE.items():
        assert cases[-1].when is dispatch.always, stage
        assert all(case.why.endswith(".") for case in cases)


@pytest.mark.parametrize(
    ("stage", "work", "kernels"),
    [
        (Stage.RUN, Work(1000, 8, 5, 4), Kernels.LOW_DIM),
        (Stage.RUN, Work(1000, 9, 5, 4), Kernels.MATMUL),
        (Stage.SCORES, Work(1000, 64, 256, 4, gluon=True), Kernels.HOPPER),
        (Stage.SCORES, Work(1000, 64, 192, 4, gluon=True), Kernels.RESIDENT),
        (Stage.SCORES, Work(63, 64, 256, 4, gluon=True), Kernels.RESIDENT),
        (Stage.SCORES, Work(1000, 64, 257, 4), Kernels.TILED),
        (Stage.SCORES, Work(1000, 65, 256, 4), Kernels.TILED),
        (Stage.SCORES, Work(1000, 256, 9, 4), Kernels.TILED),
        (Stage.SCORES, Work(1000, 257, 9, 4), Kernels.WIDE),
        (Stage.SCORES, Work(1000, 2049, 9, 4), Kernels.TILED),
        (Stage.PACKING, Work(1000, 256, 256, 4), Kernels.WITH_UPDATE),
        (Stage.PACKING, Work(1000, 256, 257, 4), Kernels.BEFORE_SCORES),
        (Stage.PACKING, Work(1000, 257, 2, 4), Kernels.BEFORE_SCORES),
        (Stage.RECHECK, Work(1000, 64, 128, 4), Kernels.ALL),
        (Stage.RECHECK, Work(1000, 64, 128, 8), Kernels.PAIRS),
        (Stage.RECHECK, Work(1000, 128, 513, 4), Kernels.PAIRS_THEN_ALL),
        (Stage.PRUNING, Work(1_000_000, 128, 1024, 4), Kernels.BOUNDS),
        (Stage.PRUNING, Work(100_000, 128, 1024, 4), Kernels.NONE),
        (Stage.PRUNING, Work(100_000_000, 128, 255, 4), Kernels.NONE),
        (Stage.PRUNING, Work(1_000_000, 128, 8193, 4), Kernels.NONE),
        (Stage.SUMS, Work(1000, 64, 348, 4), Kernels.TABLES),
        (Stage.SUMS, Work(1000, 64, 349, 4), Kernels.SORTED),
        (Stage.SUMS, Work(1000, 64, 3, 4, weighted=True), Kernels.SORTED),
        (Stage.SUMS, Work(1000, 257, 3, 4), Kernels.SORTED),
    ],
)
def test_what_is_chosen(stage, work, kernels):
    assert chosen(stage, work).kernels is kernels


# What the code of a stage can launch, and where: it takes another case for one of these.
LAUNCHED = {
    Stage.RUN: ("run_setup.build", {Kernels.LOW_DIM, Kernels.MATMUL}),
    Stage.SCORES: (
        "matmul.scan.TensorScan.scoring",
        {Kernels.HOPPER, Kernels.RESIDENT, Kernels.TILED, Kernels.WIDE},
    ),
    Stage.PACKING: ("matmul.run.TensorRun", {Kernels.WITH_UPDATE, Kernels.BEFORE_SCORES}),
    Stage.RECHECK: (
        "matmul.scan.TensorScan.stages", {Kernels.ALL, Kernels.PAIRS, Kernels.PAIRS_THEN_ALL},
    ),
    Stage.PRUNING: ("matmul.run.TensorRun.launch", {Kernels.BOUNDS, Kernels.NONE}),
    Stage.SUMS: ("update.cluster_sums.ClusterSums.stages", {Kernels.TABLES, Kernels.SORTED}),
}  # fmt: skip


@pytest.mark.parametrize("stage", Stage)
def test_each_case_is_one_that_is_launched(stage):
    where, known = LAUNCHED[stage]
    new = {case.kernels for case in dispatch.TABLE[stage]} - known
    assert not new, f"Add a branch to {where}, then the case here."


def test_scores_that_nothing_launches_are_an_error(monkeypatch):
    rows = place_rows(np.zeros((8, 16), dtype=np.float32), None, "cuda")
    rows.halve()
    scan = TensorScan(rows, 3)
    monkeypatch.setattr(scan, "first", Kernels.SORTED)
    with pytest.raises(AssertionError, match="has no launch"):
        scan.scoring(torch.zeros(SIZE, dtype=torch.int32, device=rows.device))


def test_switches_leave_kernels_out():
    works = {
        "gluon": (Stage.SCORES, Work(1000, 64, 256, 4, gluon=True)),
        "pruning": (Stage.PRUNING, Work(1_000_000, 128, 1024, 4)),
        "shared_memory_tables": (Stage.SUMS, Work(1000, 64, 8, 4)),
    }
    for name, (stage, work) in works.items():
        before = chosen(stage, work).kernels
        with options.without(name):
            assert chosen(stage, work).kernels is not before
        assert chosen(stage, work).kernels is before


@pytest.mark.parametrize("hip", [None, "6.4.43"])
def test_gpus_of_amd_are_no_hoppers(hip, monkeypatch):
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(triton, "__version__", "3.6.0")
    # PyTorch gives an MI300 this capability.
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 4))
    assert hopper.has_gluon.__wrapped__(torch.device("cuda", 0)) is (hip is None)
    # What is printed without an NVIDIA GPU is for a Hopper.
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (8, 0))
    work = dispatch.work_of(1000, 64, 256, 4, hopper.first_capability())
    assert work.gluon is (hip is not None)


def test_all_stages_are_told_of_more_features():
    assert [stage for stage, _ in choices(Work(1000, 9, 3, 4))] == list(Stage)
    assert [stage for stage, _ in choices(Work(1000, 8, 3, 4))] == [Stage.RUN]
