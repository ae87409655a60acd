"""Files of fitted estimators: what comes back, what is refused, and what damage does."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest

import lloydia
from lloydia import KMeans, MiniBatchKMeans, stopping
from lloydia.data.columns import DataError
from lloydia.data.models import contents
from lloydia.stopping import Rule

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.thread_unsafe(reason="tests share models and the file of a fixture")

X = np.random.default_rng(0).normal(size=(60, 3))
NAMES = ["a b", 'c,"d"', "größe"]
FRAME = pd.DataFrame(X, columns=NAMES)
FITTED = KMeans(2, random_state=0).fit(X)


def same(a, b):
    """Return whether two attributes have the same type and the same bits."""
    if isinstance(a, np.ndarray) and a.dtype != object:
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.ndarray | list):
        return type(a) is type(b) and list(a) == list(b)
    if isinstance(a, np.random.RandomState):
        return str(a.get_state()) == str(b.get_state())
    return type(a) is type(b) and a == b


def both(model, folder):
    """Return what is kept of an estimator, and what comes back."""
    lloydia.save(model, folder / "m.npz")
    read = lloydia.load(folder / "m.npz")
    assert type(read) is type(model)
    gone = {"labels_", "seconds_seeding_", "_left_off", "_skl_callbacks", "client"}
    return {name: value for name, value in vars(model).items() if name not in gone}, {
        name: value for name, value in vars(read).items() if name != "client"
    }


RULE = stopping.Labels(0.01) | stopping.Centers(1e-9)
MODELS = {
    "all defaults": lambda: KMeans(3).fit(X),
    "names": lambda: KMeans(3, random_state=0).fit(FRAME),
    "float32": lambda: KMeans(3, random_state=0).fit(X.astype(np.float32)),
    "history": lambda: KMeans(3, stop=stopping.Inertia(1e-3), random_state=1).fit(X),
    "rules": lambda: KMeans(3, stop=RULE, empty="keep", algorithm="elkan", n_threads=2).fit(X),
    "a start": lambda: KMeans(3, init=X[:3], n_init=1, tol=np.float64(0.1)).fit(X),
    "a start of float32": lambda: KMeans(3, init=X[:3].astype(np.float32), n_init=1).fit(X),
    "a generator": lambda: KMeans(3, random_state=np.random.RandomState(7)).fit(X),
    "one cluster": lambda: KMeans(1).fit(X[:1, :1]),
    "mini batches": lambda: MiniBatchKMeans(3, random_state=0).fit(X),
    "mini batches without labels": lambda: MiniBatchKMeans(3, compute_labels=False).fit(X),
    "a batch": lambda: MiniBatchKMeans(3, random_state=0).partial_fit(FRAME),
}


@pytest.mark.parametrize("made", MODELS.values(), ids=MODELS)
def test_what_comes_back(tmp_path, made):
    kept, read = both(made(), tmp_path)
    if "inertia_" in kept:
        kept["inertia_"] = float(kept["inertia_"])
    kept["tol"] = float(kept["tol"])
    assert kept.keys() == read.keys()
    for name, value in kept.items():
        assert same(value, read[name]), name


def test_what_it_does_is_the_same(tmp_path):
    model = KMeans(3, random_state=0).fit(FRAME).set_output(transform="pandas")
    lloydia.save(model, str(tmp_path / "m.npz"))
    read = lloydia.load(str(tmp_path / "m.npz"))
    assert np.array_equal(read.predict(FRAME), model.labels_)
    pd.testing.assert_frame_equal(read.transform(FRAME), model.transform(FRAME))
    assert read.score(FRAME) == model.score(FRAME)
    assert read.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]
    assert np.array_equal(read.fit(FRAME).labels_, model.labels_)
    with pytest.raises(ValueError, match="feature names"):
        read.predict(FRAME[NAMES[::-1]])


@pytest.mark.parametrize("seed", [5, np.random.RandomState(5)])
def test_mini_batches_go_on_with_the_same_result(tmp_path, seed):
    model = MiniBatchKMeans(4, random_state=seed, reassignment_ratio=0.5)
    model.partial_fit(X[:20])
    lloydia.save(model, tmp_path / "m.npz")
    read = lloydia.load(tmp_path / "m.npz")
    for start in range(0, 60, 5):
        model.partial_fit(X[start : start + 5])
        read.partial_fit(X[start : start + 5])
    for name, value in vars(model).items():
        assert same(value, vars(read)[name]), name
    # A generator that was given is still the one that batches draw from.
    assert (read.random_state is read._random_state) == (model.random_state is model._random_state)


def test_a_start_with_names_is_in_the_order_of_the_features(tmp_path):
    model = KMeans(3, init=FRAME[:3][NAMES[::-1]], n_init=1).fit(FRAME)
    lloydia.save(model, tmp_path / "m.npz")
    read = lloydia.load(tmp_path / "m.npz")
    assert np.array_equal(read.init, X[:3])
    assert np.array_equal(read.fit(FRAME).labels_, model.labels_)


def test_a_model_of_dask_loads_without_a_client(tmp_path):
    from lloydia.dask import KMeans as OnDask

    model = OnDask(2, random_state=0)
    vars(model).update({name: x for name, x in vars(FITTED).items() if name.endswith("_")})
    model.client = object()
    kept, read = both(model, tmp_path)
    assert kept.keys() == read.keys()
    assert lloydia.load(tmp_path / "m.npz").client is None


def test_equal_fits_are_equal_bytes(tmp_path):
    for name in ("one.npz", "two.npz"):
        lloydia.save(KMeans(3, random_state=0).fit(X), tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


class Own(Rule):
    def __call__(self, report):
        return True


def first_rows(X, k, random_state):
    return X[:k]


def changed(**attributes):
    model = KMeans(2).fit(X)
    vars(model).update(attributes)
    return model


NOT_SAVED = {
    "callable": (changed(init=first_rows), ValueError, r"init=<function .* set_params\(init='k-m"),
    "rule": (changed(stop=Own()), ValueError, r"cannot hold stop=.*set_params\(stop=None\) first"),
    "global": (changed(random_state=np.random), ValueError, r"cannot hold random_state=<module"),
    "parameter": (changed(n_clusters=0), ValueError, "n_clusters=0 must be an integer >= 1"),
    "NaN": (changed(inertia_=np.nan), ValueError, "cannot hold inertia_=nan, which no fit sets"),
    "type": (changed(n_iter_="many"), ValueError, "cannot hold n_iter_='many'"),
    "centres": (changed(cluster_centers_=X[:2] * np.inf), ValueError, "NaN or infinity"),
    "names": (changed(feature_names_in_=np.array(["a"])), ValueError, "hold feature_names_in_="),
    "not fitted": (KMeans(), ValueError, "is not fitted"),
    "other object": ((X, X), TypeError, "got a builtins.tuple: save other objects with"),
    "subclass": (type("Mine", (KMeans,), {})(), TypeError, "got a .*Mine: save other objects"),
}


@pytest.mark.parametrize(("model", "error", "says"), NOT_SAVED.values(), ids=NOT_SAVED)
def test_what_cannot_be_saved_is_one_sentence_and_no_file(tmp_path, model, error, says):
    with pytest.raises(error, match=says):
        lloydia.save(model, tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def test_the_remedy_works(tmp_path):
    model = KMeans(2, init=first_rows, n_init=1, stop=Own()).fit(X)
    labels = model.labels_
    lloydia.save(model.set_params(init="k-means++", stop=None), tmp_path / "m.npz")
    assert np.array_equal(lloydia.load(tmp_path / "m.npz").predict(X), labels)


def test_paths(tmp_path):
    for stream in (io.BytesIO(), None, 3):
        with pytest.raises(TypeError, match="save needs a path"):
            lloydia.save(FITTED, stream)
        with pytest.raises(TypeError, match="load needs a path"):
            lloydia.load(stream)
    with pytest.raises(DataError, match=r"its extension must be \.npz"):
        lloydia.save(FITTED, tmp_path / "m.pickle")
    with pytest.raises(DataError, match="no such file"):
        lloydia.load(tmp_path / "m.npz")


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.npz"
    path.write_text("old")

    def full(stream, **_):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        lloydia.save(FITTED, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# -- files that are not sound ------------------------------------------------------------------


@pytest.fixture
def rewritten(tmp_path):
    """Save the model with other parts; None leaves a part out."""

    def rewrite(model=FITTED, header=None, **arrays):
        lloydia.save(model, tmp_path / "m.npz")
        with np.load(tmp_path / "m.npz") as archive:
            parts = {**archive, **arrays}
        if header is not None:
            header = {**json.loads(str(parts["header"])), **header}
            parts["header"] = np.array(json.dumps(header))
        parts = {name: part for name, part in parts.items() if part is not None}
        np.savez(tmp_path / "bad.npz", **parts)
        return tmp_path / "bad.npz"

    return rewrite


CENTERS = FITTED.cluster_centers_
BAD_CENTERS = [
    *(None, np.zeros(3), np.zeros((0, 2)), np.zeros((2, 0)), np.zeros((1, 2, 2))),
    *(CENTERS.astype(">f8"), CENTERS.astype(np.float16), CENTERS.astype(np.longdouble)),
    *(CENTERS.astype(int), CENTERS * 1j, CENTERS.astype(str), CENTERS * np.nan, CENTERS * np.inf),
    *(CENTERS.astype("i8").astype("M8[s]"), np.zeros(2, "f4,f4"), np.array([{}], object)),
]


@pytest.mark.parametrize("centers", BAD_CENTERS)
def test_centres_that_are_none(rewritten, centers):
    with pytest.raises(
        DataError, match=r"bad\.npz( is a damaged model; write it again|.*Python objects)"
    ):
        lloydia.load(rewritten(cluster_centers_=centers))


STRANGE = [None, True, 0, -1, 1.5, 2**70, 1e999, "", "x", [], [1], {}, {"a": 1}]
# Each field of the header, and what it may be of these.
FIELDS = {
    "version": [""],
    "estimator": [],
    "parameters": [],
    "fitted": [{}],
    "feature_names": [None],
    "transform_output": [None],
    "generators": [{}],
}
CASES = [
    (name, value)
    for name, allowed in FIELDS.items()
    for value in STRANGE
    if not any(type(value) is type(one) and value == one for one in [*allowed, "x"])
]


@pytest.mark.parametrize(("name", "value"), CASES, ids=map(str, CASES))
def test_fields_of_the_header_that_do_not_fit(rewritten, name, value):
    with pytest.raises(DataError, match="is a damaged model"):
        lloydia.load(rewritten(header={name: value}))


FACTS = [(name, value) for name in contents.ESTIMATORS["KMeans"].facts for value in STRANGE]


@pytest.mark.parametrize(("name", "value"), FACTS, ids=map(str, FACTS))
def test_attributes_are_of_their_types(rewritten, name, value):
    path = rewritten(header={"fitted": {name: value}})
    try:
        read = vars(lloydia.load(path))[name]
    except DataError as error:
        if "is a damaged model" not in str(error):
            raise
        return
    assert type(read) is type(getattr(FITTED, name))
    assert read == value


BATCHES = MiniBatchKMeans(2, random_state=3).fit(X)
DAMAGED = {
    "another array": (FITTED, {"more": X}),
    "counts of another length": (BATCHES, {"counts_": np.zeros(3)}),
    "negative counts": (BATCHES, {"counts_": np.array([1.0, -1])}),
    "no words": (BATCHES, {"words_of__random_state": None}),
    "few words": (BATCHES, {"words_of__random_state": np.zeros(3, np.uint32)}),
    "history of a text": (FITTED, {"inertia_history_": np.array("x")}),
    "an attribute of another class": (FITTED, {"header": {"fitted": {"n_steps_": 3}}}),
    "few names": (FITTED, {"header": {"feature_names": ["a"]}}),
    "a start without a name": (FITTED, {"init": CENTERS}),
    "no generator": (
        FITTED,
        {"header": {"parameters": {**KMeans(2).get_params(), "random_state": "RandomState"}}},
    ),
    "a parameter out of range": (
        FITTED,
        {"header": {"parameters": {**KMeans(2).get_params(), "max_iter": -1}}},
    ),
    "no parameters": (FITTED, {"header": {"parameters": {}}}),
    "a header of bytes": (FITTED, {"header": None}),
}


@pytest.mark.parametrize(("model", "parts"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_parts(rewritten, tmp_path, model, parts):
    path = rewritten(model, **parts)
    if parts == {"header": None}:
        np.savez(path, header=np.array(b"{}"), cluster_centers_=CENTERS)
    with pytest.raises(DataError, match="is a damaged model"):
        lloydia.load(path)


def test_newer_versions_and_other_formats(rewritten):
    more = {**KMeans(2).get_params(), "warp": 9}
    newer = {"version": "9.1", "parameters": more}
    for header, says in (
        ({"format": "lloydia model 3", "version": "9.1"}, "has the format 'lloydia model 3', whi"),
        (newer, "has the parameter 'warp', which this version of Lloydia"),
        ({"format": "lloydia checkpoint 2"}, "has the format 'lloydia checkpoint 2', not"),
    ):
        with pytest.raises(DataError, match=says) as caught:
            lloydia.load(rewritten(header=header))
        assert ("Lloydia 9.1 wrote it" in str(caught.value)) == ("9.1" in header.values())
    # Of the same version it is damage.
    with pytest.raises(DataError, match="is a damaged model"):
        lloydia.load(rewritten(header={"parameters": more}))


OF_ANOTHER_VERSION = {
    "an algorithm": {"header": {"fitted": {"algorithm_": "warp"}}},
    "a fact": {"header": {"fitted": {"warp_": 1}}},
    "a class": {"header": {"estimator": "WarpKMeans"}},
    "a start": {"header": {"parameters": {**KMeans(2).get_params(), "init": "warp"}}},
    "an array": {"warp_": CENTERS},
    "a field that is gone": {"header": {"generators": None}},
}


@pytest.mark.parametrize("parts", OF_ANOTHER_VERSION.values(), ids=OF_ANOTHER_VERSION)
def test_what_only_another_version_reads(rewritten, parts):
    header = parts.get("header", {})
    with pytest.raises(DataError, match="is a damaged model; write it again"):
        lloydia.load(rewritten(**parts))
    version = re.escape(lloydia.__version__)
    says = rf"Lloydia 9\.1 wrote what this version \({version}\) does not read: install that"
    with pytest.raises(DataError, match=says):
        lloydia.load(rewritten(**{**parts, "header": {**header, "version": "9.1"}}))


def test_a_parameter_that_is_new_since_has_its_default(rewritten):
    parameters = KMeans(2, empty="keep", max_iter=7).get_params()
    del parameters["empty"]
    read = lloydia.load(rewritten(header={"version": "0.0.1", "parameters": parameters}))
    assert (read.empty, read.max_iter) == ("relocate", 7)


def test_strangers(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "other.npz", X=X)
    for name in ("text.npz", "other.npz"):
        with pytest.raises(DataError, match=r"is not a model: name a file that lloydia\.save"):
            lloydia.load(tmp_path / name)


def test_every_truncation_is_noticed(tmp_path):
    lloydia.save(FITTED, tmp_path / "m.npz")
    whole = (tmp_path / "m.npz").read_bytes()
    for length in range(0, len(whole), 97):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        with pytest.raises(DataError):
            lloydia.load(tmp_path / "cut.npz")


def test_flipped_bits_are_noticed_or_harmless(tmp_path):
    lloydia.save(FITTED, tmp_path / "m.npz")
    whole = bytearray((tmp_path / "m.npz").read_bytes())
    for at in range(0, len(whole), 31):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        (tmp_path / "bad.npz").write_bytes(damaged)
        try:
            read = lloydia.load(tmp_path / "bad.npz")
        except DataError:
            continue
        assert same(read.cluster_centers_, CENTERS)


# -- the first format --------------------------------------------------------------------------

FIRST = {
    "format": np.array("lloydia k-means 1"),
    "version": np.array("0.1.0"),
    "centers": np.array([[0.0, 1.0], [5.0, 6.0]], np.float32),
    "dtype": np.array("float32"),
    "n_iter": np.array(7),
    "inertia": np.array(1.25),
    "feature_names": np.array(["a", "größe"]),
}


def test_the_first_format_is_read(tmp_path):
    np.savez(tmp_path / "m.npz", **FIRST)
    read = lloydia.load(tmp_path / "m.npz")
    assert same(read.cluster_centers_, FIRST["centers"])
    assert (read.n_iter_, read.inertia_, read.n_clusters) == (7, 1.25, 2)
    assert read.feature_names_in_.tolist() == ["a", "größe"]
    del read.feature_names_in_
    assert read.predict(np.array([[4, 4], [1, 1]], np.float32)).tolist() == [1, 0]


NUMBERS = [np.array(v) for v in ("1", 1j, True, [1], [[1]], b"1", np.datetime64(1, "s"))]
BAD_PARTS = {
    "centers": [np.zeros(3, np.float32), FIRST["centers"] * np.nan, FIRST["centers"] * 1j],
    "dtype": [*NUMBERS, np.array("float64"), np.array(["float32"])],
    "n_iter": [*NUMBERS, *map(np.array, (1.0, -1, np.uint64(2**63), np.int32(1), np.nan))],
    "inertia": [*NUMBERS, *map(np.array, ("much", 1, -1.0, np.nan, np.inf, np.float32(1)))],
    "version": [*NUMBERS[1:], np.array(["0.1.0"])],
    "feature_names": [*map(np.array, ("ab", ["a"], [1, 2], [["a", "b"]], [b"a", b"b"]))],
}
BAD = [(name, part) for name, parts in BAD_PARTS.items() for part in parts]


@pytest.mark.parametrize(("name", "part"), BAD, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BAD)])
def test_parts_of_the_first_format_that_do_not_fit(tmp_path, name, part):
    np.savez(tmp_path / "bad.npz", **{**FIRST, name: part})
    with pytest.raises(DataError, match=r"bad\.npz is a damaged model"):
        lloydia.load(tmp_path / "bad.npz")
    np.savez(tmp_path / "bad.npz", **{**FIRST, "format": part})
    with pytest.raises(DataError, match="has the format"):
        lloydia.load(tmp_path / "bad.npz")
