"""`lloydia fit --checkpoint FILE --every N --resume`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("sklearn.callback")

FIT = ("fit", "blobs.csv", "-k", 7, "--tol", 0, "--checkpoint", "c.npz", "--every", 1)


def same(facts, others):
    changing = ("seconds", "seconds_seeding", "n_distances", "labels", "checkpoint")
    return all(facts[name] == others[name] for name in facts if name not in changing)


def facts_of(ran):
    assert ran.status == 0, ran.err
    return json.loads(ran.out)


def test_a_fit_that_was_over_is_resumed(run, blobs):
    plain = facts_of(run(*FIT[:6], "--json"))
    first = run(*FIT, "--resume", "--json")
    assert "c.npz does not exist yet: the fit starts" in first.err
    again = run(*FIT, "--resume", "--json", "--threads", 2, "--algorithm", "elkan")
    assert again.err == "lloydia: the fit continues from c.npz.\n"
    assert same(facts_of(first), plain)
    assert facts_of(first)["checkpoint"] == "c.npz"
    assert facts_of(again)["inertia"] == plain["inertia"]
    assert facts_of(again)["n_distances"] == 120 * 7


def test_max_iter_is_raised_on_resume(run, blobs):
    plain = facts_of(run(*FIT[:6], "--json"))
    assert facts_of(run(*FIT, "--max-iter", 2, "--json"))["n_iter"] == 2 < plain["n_iter"]
    assert same(facts_of(run(*FIT, "--resume", "--json")), plain)
    ran = run(*FIT, "--resume", "--max-iter", 2)
    assert ran.status == 2
    assert "--max-iter 2 differs from the fit in c.npz (--max-iter 300)" in ran.err


def test_a_checkpoint_is_not_replaced_unless_it_is_resumed(run, blobs, folder):
    run(*FIT)
    before = (folder / "c.npz").read_bytes()
    ran = run(*FIT, "--seed", 5)
    assert ran.status == 2
    assert "--checkpoint c.npz exists: add --resume to continue from it" in ran.err
    assert (folder / "c.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            ("--seed", 5),
            "--seed 5 differs from the fit in c.npz (--seed 0): a",
        ),
        (("--n-init", 2), "--n-init 2 differs from the fit in c.npz (--n-init auto)"),
        (
            ("--init", "s.npy"),
            "--init FILE differs from the fit in c.npz (--init k",
        ),
        (
            ("--columns", "a,b"),
            "(120, 2), and those of the interrupted fit had (1",
        ),
        (("--dtype", "float32"), "The rows have the dtype float32"),
    ],
)
def test_another_fit_is_not_resumed(run, blobs, changed, message):
    np.save("s.npy", blobs[:7])
    run(*FIT)
    ran = run(*FIT, "--resume", *changed)
    assert ran.status == 2
    assert message in ran.err


def test_another_rule_is_not_resumed_with(run, blobs):
    fit = [option for option in FIT if option not in ("--tol", 0)]
    run(*fit)
    ran = run(*fit, "--resume", "--stop", "labels")
    assert ran.status == 2
    assert "--stop labels:0.0 differs from the fit in c.npz (no" in ran.err


def test_other_centres_than_those_of_the_checkpoint(run, blobs):
    for i, start in enumerate((blobs[:7], blobs[7:14])):
        np.save(f"{i}.npy", start)
    run(*FIT, "--init", "0.npy")
    ran = run(*FIT, "--init", "1.npy", "--resume")
    assert "--init FILE differs from the fit in c.npz (another file)" in ran.err


def test_a_damaged_checkpoint_is_not_resumed(run, blobs, folder):
    (folder / "c.npz").write_bytes(b"PK\x03\x04")
    ran = run(*FIT, "--resume")
    assert ran.status == 2
    assert "c.npz is damaged" in ran.err


@pytest.mark.parametrize("position", [625, 1_000_000, -1, "7", None])
def test_a_forged_position_of_the_generator_is_one_sentence(run, blobs, folder, position):
    run(*FIT, "--max-iter", 2)
    with np.load("c.npz") as archive:
        parts = dict(archive)
    header = json.loads(str(parts["header"]))
    header["random_state"][1] = position
    np.savez("c.npz", **{**parts, "header": np.array(json.dumps(header))})
    forged = (folder / "c.npz").read_bytes()
    ran = run(*FIT, "--resume", "--labels", "l.csv")
    assert (ran.status, ran.out) == (2, "")
    assert "c.npz is a damaged checkpoint: use an earlier one." in ran.err
    assert (folder / "c.npz").read_bytes() == forged
    assert not (folder / "l.csv").exists()


@pytest.mark.kill
def test_a_command_that_is_killed_goes_on(folder, run):
    X = np.random.default_rng(0).random((30_000, 2))
    np.save("x.npy", X)
    fit = ("fit", "x.npy", "-k", 200, "--tol", 0, "--max-iter", 200, "--json")
    saving = ("--checkpoint", "c.npz", "--every", 1)
    command = [sys.executable, "-m", "lloydia", *map(str, (*fit, *saving))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (folder / "c.npz").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    expected, found = (facts_of(run(*fit, *more)) for more in ((), (*saving, "--resume")))
    assert same(found, expected)
    assert found["n_iter"] > 20
