from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from lloydia.data.columns import DataError
from lloydia.data.models import Model, load_model, save_model

CENTERS = np.array([[0.0, 1.0], [5.0, 6.0]], np.float32)
MODEL = Model(CENTERS, 7, 1.25, "0.1.0", ("a", "b"))


@pytest.mark.parametrize("names", [("a", "größe"), None])
def test_round_trip(tmp_path, names):
    model = dataclasses.replace(MODEL, names=names)
    save_model(model, tmp_path / "m.npz")
    read = load_model(tmp_path / "m.npz")
    assert read.centers.tobytes() == CENTERS.tobytes()
    assert read.centers.dtype == np.float32
    assert (read.n_iter, read.inertia, read.version, read.names) == (7, 1.25, "0.1.0", names)


def test_estimator_predicts_with_the_centres():
    labels = MODEL.estimator().predict(np.array([[4, 4], [1, 1], [9, 9]], np.float32))
    assert labels.tolist() == [1, 0, 1]


def test_equal_models_are_equal_bytes(tmp_path):
    save_model(MODEL, tmp_path / "one.npz")
    save_model(MODEL, tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


NUMBERS = [
    np.array(v) for v in ("1", 1j, True, [1], [[1]], "2020-01-01", b"1", np.datetime64(1, "s"))
]
BAD_PARTS = {
    "centers": [
        *(np.zeros(3, np.float32), np.zeros((0, 2), np.float32), np.zeros((2, 0), np.float32)),
        *(np.zeros((1, 2, 2), np.float32), CENTERS.astype(">f4"), CENTERS.astype(np.float16)),
        *(CENTERS.astype(np.longdouble), CENTERS.astype(int), CENTERS * 1j, CENTERS.astype(str)),
        *(CENTERS * np.nan, CENTERS * np.inf, CENTERS.astype("M8[s]"), np.zeros(2, "f4,f4")),
    ],
    "dtype": [*NUMBERS, np.array("float64"), np.array(["float32"]), np.array(b"float32")],
    "n_iter": [*NUMBERS, *map(np.array, (1.0, -1, np.uint64(2**63), np.int32(1), np.nan))],
    "inertia": [*NUMBERS, *map(np.array, ("much", 1, -1.0, np.nan, np.inf, np.float32(1)))],
    "version": [*NUMBERS[1:5], *NUMBERS[6:], np.array(["0.1.0"])],
    "feature_names": [
        *NUMBERS[:4],
        *map(np.array, ("ab", ["a"], [1, 2], [["a", "b"]], [b"a", b"b"])),
    ],
}
BAD = [(name, part) for name, parts in BAD_PARTS.items() for part in parts]


@pytest.mark.parametrize(("name", "part"), BAD, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BAD)])
def test_parts_that_do_not_fit(tmp_path, name, part):
    save_model(MODEL, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as archive:
        parts = {**archive, name: part}
    np.savez(tmp_path / "bad.npz", **parts)
    with pytest.raises(DataError, match=r"bad\.npz is a damaged model"):
        load_model(tmp_path / "bad.npz")


@pytest.mark.parametrize("part", NUMBERS)
def test_a_format_is_a_text(tmp_path, part):
    save_model(MODEL, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as archive:
        parts = {**archive, "format": part}
    np.savez(tmp_path / "bad.npz", **parts)
    with pytest.raises(DataError, match="has the format"):
        load_model(tmp_path / "bad.npz")


def test_nan_objects_and_other_formats(tmp_path):
    bad = MODEL.centers.copy()
    bad[0, 0] = np.nan
    save_model(dataclasses.replace(MODEL, centers=bad), tmp_path / "nan.npz")
    with np.load(tmp_path / "nan.npz") as archive:
        parts = dict(archive)
    np.savez(tmp_path / "objects.npz", **{**parts, "centers": np.array([{}], object)})
    np.savez(tmp_path / "later.npz", **{**parts, "format": np.array("lloydia k-means 9")})
    for name, says in (("nan", "damaged"), ("objects", "damaged"), ("later", "has the format")):
        with pytest.raises(DataError, match=says):
            load_model(tmp_path / f"{name}.npz")


def test_every_truncation_is_noticed(tmp_path):
    save_model(MODEL, tmp_path / "m.npz")
    whole = (tmp_path / "m.npz").read_bytes()
    for length in range(0, len(whole), 97):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        with pytest.raises(DataError):
            load_model(tmp_path / "cut.npz")


def test_flipped_bits_are_noticed_or_harmless(tmp_path):
    save_model(MODEL, tmp_path / "m.npz")
    whole = bytearray((tmp_path / "m.npz").read_bytes())
    for at in range(0, len(whole), 31):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        (tmp_path / "bad.npz").write_bytes(damaged)
        try:
            read = load_model(tmp_path / "bad.npz")
        except DataError:
            continue
        assert read.centers.tobytes() == CENTERS.tobytes()
