"""The file of a fit that is under way."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from lloydia import stopping
from lloydia.data.checkpoints import load_snapshot, save_snapshot
from lloydia.data.columns import DataError
from lloydia.loop import Halt, Result
from lloydia.resuming import Snapshot, estimator_parameters

USED = np.array([[0.1, 1e-30], [5.0, np.nextafter(6, 7)]])
HALT = Halt(17, USED, USED + 1, [3.5, 0.1 + 0.2])
BEST = Result(None, USED - 1, 1 / 3, 12, True, "strict convergence", [1.0, 1e300], "elkan", True)
PARAMETERS = {"n_clusters": 2, "init": "random", "stop": None, "random_state": 4, "tol": 0.1}
DATA = {"shape": [100, 2], "dtype": "float64", "digest": "0f"}
GENERATOR = np.random.RandomState(3)
GENERATOR.normal()  # so that there is half a pair left
SNAPSHOT = Snapshot(PARAMETERS, DATA, {0: BEST}, {1: HALT}, GENERATOR.get_state(), None)


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("halts", [{1: HALT}, {}, {0: HALT, 12: HALT}])
@pytest.mark.parametrize("results", [{0: BEST}, {}, {2: BEST, 12: BEST}])
@pytest.mark.parametrize("init", [USED, None])
def test_round_trip(tmp_path, halts, results, init):
    snapshot = dataclasses.replace(SNAPSHOT, halts=halts, results=results, init=init)
    save_snapshot(snapshot, tmp_path / "c.npz")
    assert same(load_snapshot(tmp_path / "c.npz"), snapshot)
    assert [each.name for each in tmp_path.iterdir()] == ["c.npz"]


def test_the_state_of_the_generator_is_whole(tmp_path):
    save_snapshot(SNAPSHOT, tmp_path / "c.npz")
    other = np.random.RandomState()
    other.set_state(load_snapshot(tmp_path / "c.npz").random_state)
    expected = np.random.RandomState(3)
    expected.normal()
    assert other.normal() == expected.normal()
    assert other.randint(10**6) == expected.randint(10**6)


def test_parameters_become_those_of_an_estimator():
    stored = {**PARAMETERS, "stop": "labels:0.0|centers:1e-05", "random_state": "RandomState"}
    parameters = estimator_parameters(dataclasses.replace(SNAPSHOT, parameters=stored, init=USED))
    assert parameters["stop"] == stopping.Labels() | stopping.Centers(1e-5)
    assert parameters["init"] is USED
    assert isinstance(parameters["random_state"], np.random.RandomState)


def test_no_file_and_strangers(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        load_snapshot(tmp_path / "c.npz")
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "other.npz", X=USED)
    np.save(tmp_path / "array.npy", USED)
    for name in ("text.npz", "other.npz", "array.npy"):
        with pytest.raises(DataError, match="is not a checkpoint"):
            load_snapshot(tmp_path / name)


def rewritten(path, header=None, **arrays):
    """Save the snapshot with other parts."""
    save_snapshot(SNAPSHOT, path)
    parts = dict(np.load(path))
    if header is not None:
        parts["header"] = np.array(json.dumps({**json.loads(str(parts["header"])), **header}))
    np.savez(path, **{**parts, **arrays})


DAMAGED = {
    "short generator": {"keys": np.zeros(3, np.uint32)},
    "another shape": {"1_used": np.zeros((3, 2))},
    "another type": {"1_made": USED.astype(np.float32)},
    "NaN": {"0_centers": USED * np.nan},
    "no text": {"header": {"parameters": None}},
    "no number": {"header": {"halts": {"1": "many"}}},
    "half a result": {"header": {"results": {"0": {"n_iter": 3}}}},
    "centres of no run": {"header": {"halts": {"2": 3}}},
    "no generator": {"header": {"random_state": ["PCG64", 0, 0, 0.0]}},
}


@pytest.mark.parametrize("parts", DAMAGED.values(), ids=DAMAGED)
def test_damaged_parts(tmp_path, parts):
    rewritten(tmp_path / "c.npz", **parts)
    with pytest.raises(DataError, match="is a damaged checkpoint"):
        load_snapshot(tmp_path / "c.npz")


def test_any_damaged_byte_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "c.npz"
    save_snapshot(SNAPSHOT, path)
    whole = path.read_bytes()
    for stop in range(0, len(whole), 97):
        path.write_bytes(whole[:stop])
        with pytest.raises(DataError):
            load_snapshot(path)
    for at in range(0, len(whole), 31):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        path.write_bytes(damaged)
        try:
            read = load_snapshot(path)
        except DataError:
            continue
        assert same(read, SNAPSHOT)


def test_other_formats_are_refused_and_other_versions_named(tmp_path):
    rewritten(tmp_path / "c.npz", header={"format": "lloydia checkpoint 9"})
    with pytest.raises(DataError, match="has the format 'lloydia checkpoint 9'"):
        load_snapshot(tmp_path / "c.npz")
    rewritten(tmp_path / "c.npz", header={"version": "0.0.7"})
    with pytest.warns(UserWarning, match=r"written by Lloydia 0\.0\.7"):
        assert same(load_snapshot(tmp_path / "c.npz"), SNAPSHOT)


def test_objects_are_never_loaded(tmp_path):
    rewritten(tmp_path / "c.npz", **{"1_used": np.array([print, print], dtype=object)})
    with pytest.raises(DataError):
        load_snapshot(tmp_path / "c.npz")
