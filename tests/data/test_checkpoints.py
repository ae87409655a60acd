"""The file of a fit that is under way."""

from __future__ import annotations

import dataclasses
import functools
import json
import random
import warnings

import numpy as np
import pytest

from lloydia import KMeans, stopping
from lloydia.callbacks import Checkpoint
from lloydia.data.checkpoints import load_snapshot, save_snapshot
from lloydia.data.columns import DataError
from lloydia.loop.resuming import Snapshot, estimator_parameters
from lloydia.loop.run import Halt, Result
from lloydia.loop.stored_parameters import stored_array

USED = np.array([[0.1, 1e-30], [5.0, np.nextafter(6, 7)]])
HALT = Halt(17, USED, USED + 1, [3.5, 0.1 + 0.2])
BEST = Result(None, USED - 1, 1 / 3, 12, True, "strict convergence", [1.0, 1e300], "elkan", True)
LIMITED = BEST._replace(n_iter=17, converged=False, reason="max_iter reached")
PARAMETERS = {
    **KMeans(2, init="random", random_state=4, tol=0.1, n_init=3).get_params(deep=False),
    "max_iter": 40,
}
DATA = {"shape": [100, 2], "dtype": "float64", "digest": "0f" * 32}
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


RUNS = [
    ({}, {0: HALT}),
    ({0: BEST}, {}),
    ({0: BEST}, {1: HALT}),
    ({0: LIMITED, 1: BEST}, {0: HALT, 2: HALT}),
    ({0: BEST, 1: BEST, 2: LIMITED}, {2: HALT}),
]


@pytest.mark.parametrize(("results", "halts"), RUNS)
def test_round_trip(tmp_path, results, halts):
    snapshot = dataclasses.replace(SNAPSHOT, results=results, halts=halts)
    save_snapshot(snapshot, tmp_path / "c.npz")
    assert same(load_snapshot(tmp_path / "c.npz"), snapshot)
    assert [each.name for each in tmp_path.iterdir()] == ["c.npz"]


GIVEN = dataclasses.replace(
    SNAPSHOT,
    parameters={**PARAMETERS, "init": stored_array(USED)},
    results={},
    halts={0: HALT},
    init=USED,
)


def test_round_trip_with_a_start(tmp_path):
    save_snapshot(GIVEN, tmp_path / "c.npz")
    assert same(load_snapshot(tmp_path / "c.npz"), GIVEN)


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


# Each field of the header, by its path, and what it may not be.  Of all it may be nothing else
# than these types, whatever their values.
STRANGE = [None, True, 0, -1, 1.5, 625, 2**70, 1e999, -1e999, "", "x", "1", [], [1], {}, {"a": 1}]
FIELDS = {
    ("parameters",): "dict",
    ("data",): "dict",
    ("results",): "dict",
    ("halts",): "dict",
    ("random_state",): "list",
    ("version",): "str",
    ("data", "shape"): "list",
    ("data", "shape", 0): range(2, 2**63),
    ("data", "shape", 1): (2,),
    ("data", "dtype"): ("float64",),
    ("data", "digest"): (),
    ("random_state", 0): ("MT19937",),
    ("random_state", 1): range(625),
    ("random_state", 2): (1,),  # half a pair is left
    ("random_state", 3): "float",
    ("results", "0"): "dict",
    ("results", "0", "inertia"): "cost",
    ("results", "0", "n_iter"): range(1, 41),
    ("results", "0", "converged"): (True,),
    ("results", "0", "reason"): "reason",
    ("results", "0", "algorithm"): ("lloyd", "elkan"),
    ("results", "0", "full"): (True, False),
    ("halts", "1"): range(2, 41),
    ("parameters", "n_clusters"): (2,),
    ("parameters", "init"): ("random",),
    ("parameters", "n_init"): range(2, 2**71),
    ("parameters", "max_iter"): range(17, 2**71),
    ("parameters", "tol"): "tol",
    ("parameters", "verbose"): "verbose",
    ("parameters", "random_state"): "seed",
    ("parameters", "copy_x"): (True, False),
    ("parameters", "algorithm"): ("auto",),
    ("parameters", "device"): "str",
    ("parameters", "n_threads"): "threads",
    ("parameters", "stop"): (None,),
    ("parameters", "empty"): ("keep",),
}


def allowed(value, what):
    """Whether a field may have a value, as far as its own type and range say."""
    plain = type(value) is int
    if isinstance(what, range):
        return plain and value in what
    if isinstance(what, tuple):
        return any(type(value) is type(each) and value == each for each in what)
    return {
        "str": type(value) is str,
        "reason": type(value) is str and value != "",
        "float": type(value) is float and np.isfinite(value),
        "cost": type(value) is float and 0 <= value < np.inf,
        "tol": type(value) in (int, float, bool) and value >= 0,
        "verbose": type(value) in (int, bool) and value >= 0,
        "seed": value is None or (type(value) in (int, bool) and 0 <= value < 2**32),
        "threads": value is None or (plain and value >= 1),
    }.get(what, False)


@pytest.mark.parametrize("place", FIELDS, ids=lambda place: "-".join(map(str, place)))
def test_every_field_is_of_its_type_and_in_its_range(tmp_path, place):
    save_snapshot(SNAPSHOT, path := tmp_path / "c.npz")
    parts = dict(np.load(path))
    for value in [*STRANGE, "absent"]:
        header = json.loads(str(parts["header"]))
        *before, last = place
        owner = functools.reduce(lambda part, name: part[name], before, header)
        owner[last] = value
        if value == "absent":
            del owner[last]
        np.savez(path, **{**parts, "header": np.array(json.dumps(header))})
        if value != "absent" and allowed(value, FIELDS[place]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # another version
                load_snapshot(path)
            continue
        with pytest.raises(DataError, match="is a damaged checkpoint: use an earlier one"):
            load_snapshot(path)


def test_a_forged_position_of_the_generator_is_never_used(tmp_path):
    for position in (625, 1_000_000, 2**31, -1):
        state = ["MT19937", position, 0, 0.0]
        rewritten(tmp_path / "c.npz", header={"random_state": state})
        with pytest.raises(DataError, match=r"c\.npz is a damaged checkpoint"):
            KMeans.resume(tmp_path / "c.npz")


WRONG_ARRAYS = {
    "keys": [np.zeros(624, np.uint64), np.zeros((624, 1), np.uint32), np.zeros(625, np.uint32)],
    "0_centers": [USED[:1], USED.astype(">f8"), USED * np.inf, USED.ravel(), np.array("x")],
    "0_history": [
        np.zeros((1, 1)),
        np.array([-1.0]),
        np.array([np.nan]),
        np.zeros(13),
        np.int64(1),
    ],
    "1_used": [USED * np.nan, USED.astype(np.float32), USED.astype(complex), USED[:, :1]],
    "1_made": [USED * np.nan, USED.astype(str), np.zeros((0, 2))],
    "1_costs": [np.zeros(18), np.array(["a"]), np.array([np.inf])],
    "header": [np.array("[]"), np.array("{"), np.array(b"{}"), np.zeros(3), np.array("[" * 9999)],
    "2_used": [USED],
    "init": [USED],
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_every_array_is_of_its_type_shape_and_range(tmp_path, name):
    save_snapshot(SNAPSHOT, path := tmp_path / "c.npz")
    parts = dict(np.load(path))
    for value in WRONG_ARRAYS[name]:
        np.savez(path, **{**parts, name: value})
        with pytest.raises(DataError, match="is a damaged checkpoint"):
            load_snapshot(path)
    parts.pop(name, None)
    np.savez(path, **parts)
    if name in ("2_used", "init"):
        assert same(load_snapshot(path), SNAPSHOT)
        return
    with pytest.raises(DataError, match=r"is a damaged checkpoint|is not a checkpoint"):
        load_snapshot(path)


WRONG_RUNS = {
    "none": ({}, {}),
    "the first is missing": ({1: BEST}, {2: HALT}),
    "one is missing": ({0: BEST}, {2: HALT}),
    "too many": (dict.fromkeys(range(4), BEST), {}),
    "converged and not over": ({0: BEST}, {0: HALT}),
    "two ends": ({0: LIMITED._replace(n_iter=16)}, {0: HALT}),
    "converged at the limit": ({0: LIMITED._replace(converged=True)}, {}),
}


@pytest.mark.parametrize("runs", WRONG_RUNS.values(), ids=WRONG_RUNS)
def test_runs_that_no_fit_leaves_behind(tmp_path, runs):
    results, halts = runs
    snapshot = dataclasses.replace(SNAPSHOT, results=results, halts=halts)
    save_snapshot(snapshot, tmp_path / "c.npz")
    with pytest.raises(DataError, match="is a damaged checkpoint"):
        load_snapshot(tmp_path / "c.npz")


@pytest.mark.parametrize("init", [USED + 1, USED[:1], None])
def test_a_start_that_is_not_the_one_of_the_parameters(tmp_path, init):
    save_snapshot(dataclasses.replace(GIVEN, init=init), tmp_path / "c.npz")
    with pytest.raises(DataError, match="is a damaged checkpoint"):
        load_snapshot(tmp_path / "c.npz")


@pytest.mark.parametrize("change", [{"bogus": 1}, {"tol": ...}], ids=["one more", "one less"])
def test_a_checkpoint_of_another_estimator(tmp_path, change):
    parameters = {**PARAMETERS, **change}
    parameters = {name: value for name, value in parameters.items() if value is not ...}
    save_snapshot(dataclasses.replace(SNAPSHOT, parameters=parameters), tmp_path / "c.npz")
    with pytest.raises(DataError, match=r"checkpoint of another estimator|damaged checkpoint"):
        KMeans.resume(tmp_path / "c.npz")


def test_centres_whose_squares_overflow_reach_no_kernel(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 2))
    path = tmp_path / "c.npz"
    KMeans(2, random_state=0, max_iter=2, tol=0).set_callbacks(Checkpoint(path)).fit(X)
    parts = dict(np.load(path))
    for name in ("0_used", "0_centers"):
        np.savez(path, **{**parts, name: parts[name] * 1e200})
        with pytest.raises(ValueError, match="in the centres is too large"):
            KMeans.resume(path).set_params(max_iter=9).fit(X)


def forged(part, draw):
    """Return a part of a header with one value of it replaced, left out or added."""
    if isinstance(part, dict | list) and part and draw.random() < 0.8:
        places = list(part) if isinstance(part, dict) else range(len(part))
        place, what = draw.choice(list(places)), draw.random()
        if isinstance(part, dict) and what < 0.1:
            del part[place]
        elif isinstance(part, dict) and what < 0.2:
            part[draw.choice("0123")] = draw.choice(STRANGE)
        else:
            part[place] = forged(part[place], draw)
        return part
    return draw.choice(STRANGE)


def test_a_forged_checkpoint_is_refused_or_changes_nothing(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3))
    path = tmp_path / "c.npz"
    options = {"n_init": 3, "random_state": 0, "tol": 0}
    KMeans(4, max_iter=4, **options).set_callbacks(Checkpoint(path, every=1)).fit(X)
    whole = KMeans(4, max_iter=50, **options).fit(X)
    parts, draw = dict(np.load(path)), random.Random(0)
    for _ in range(80):
        header = forged(json.loads(str(parts["header"])), draw)
        np.savez(path, **{**parts, "header": np.array(json.dumps(header))})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another version
            try:
                model = KMeans.resume(path).set_params(max_iter=50).fit(X)
            except ValueError:
                continue
        # Another parameter may be another fit, rightly.
        if model.get_params() == whole.get_params():
            assert model.inertia_ == whole.inertia_


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
