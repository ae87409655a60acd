from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from lloydia import KMeans

KEYS = [
    "n_samples",
    "n_features",
    "n_clusters",
    "dtype",
    "algorithm",
    "device",
    "n_iter",
    "inertia",
    "seconds",
    "seconds_seeding",
    "converged",
    "n_distances",
    "labels",
    "centers",
    "model",
    "plot",
    "out",
    "checkpoint",
    "sizes",
]


def test_json_has_the_promised_keys_and_the_estimator_s_figures(run, blobs):
    ran = run("fit", "blobs.csv", "-k", 3, "--seed", 4, "--labels", "l.npy", "--json")
    assert (ran.status, ran.err) == (0, "")
    facts = json.loads(ran.out)
    assert list(facts) == KEYS
    same = KMeans(3, random_state=4).fit(blobs)
    assert facts["inertia"] == same.inertia_
    assert facts["n_iter"] == same.n_iter_
    assert facts["n_distances"] == same.n_distances_
    assert (facts["n_samples"], facts["n_features"], facts["n_clusters"]) == (120, 3, 3)
    assert (facts["dtype"], facts["converged"], facts["centers"]) == ("float64", True, None)
    assert 0 <= facts["seconds_seeding"] <= facts["seconds"]
    assert np.array_equal(np.load(facts["labels"]), same.labels_)
    assert facts["sizes"] == np.bincount(same.labels_).tolist()


def test_text_for_people(run, blobs):
    ran = run("fit", "blobs.csv", "-k", 3)
    assert ran.status == 0
    lines = dict(line.split("  ", 1) for line in ran.out.splitlines())
    assert lines["converged"].strip() == "yes"
    assert sorted(lines["sizes"].strip().split(", ")) == ["40", "40", "40"]


def _read(path):
    if path.endswith(".npy"):
        return np.load(path)
    if path.endswith(".parquet"):
        parquet = pytest.importorskip("pyarrow.parquet")
        return np.column_stack([c.to_numpy() for c in parquet.read_table(path).columns])
    delimiter = {"csv": ",", "tsv": "\t", "txt": None}[path[-3:]]
    return np.loadtxt(path, delimiter=delimiter, skiprows=int(path[-3:] != "txt"), ndmin=2)


@pytest.mark.parametrize("kind", ["npy", "csv", "tsv", "txt", "parquet"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_outputs_read_back_bit_for_bit(run, blobs, kind, dtype):
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    labels, centers = f"l.{kind}", f"c.{kind}"
    ran = run(
        *("fit", "blobs.csv", "-k", 3, "--dtype", dtype, "--labels", labels, "--centers", centers)
    )
    assert ran.status == 0, ran.err
    same = KMeans(3, random_state=0).fit(blobs.astype(dtype))
    assert np.array_equal(_read(labels).ravel().astype(int), same.labels_)
    assert np.array_equal(_read(centers).astype(dtype), same.cluster_centers_)


def test_centres_carry_the_names_of_the_columns(run, blobs):
    run("fit", "blobs.csv", "-k", 2, "--columns", "c,1", "--centers", "c.csv", "--labels", "l.csv")
    with open("c.csv") as centers, open("l.csv") as labels:
        assert centers.readline() == "c,a\n"
        assert labels.readline() == "label\n"


def test_columns_without_a_name_are_pointed_out(run, folder):
    rows = "".join(f"{i},{i % 3},{i % 5}\n" for i in range(9))
    (folder / "index.csv").write_text(",a,b\n" + rows)
    ran = run("fit", "index.csv", "-k", 2)
    assert ran.status == 0
    assert ran.err == (
        "lloydia: warning: index.csv: column 1 has no name in the header and is used as a feature; "
        "leave it out with --columns 2-3.\n"
    )
    assert run("fit", "index.csv", "-k", 2, "--columns", "2-3").err == ""


def test_the_report_names_the_files(run, blobs):
    assert "model            m.npz\n" in run("fit", "blobs.csv", "-k", 2, "--model", "m.npz").out
    facts = json.loads(run("fit", "blobs.csv", "-k", 2, "--model", "m.npz", "--json").out)
    assert (facts["model"], facts["plot"]) == ("m.npz", None)


def test_sizes_that_are_all_equal(run, folder):
    (folder / "x.csv").write_text("".join(f"{i}\n" for i in range(13)))
    assert "1 each\n" in run("fit", "x.csv", "-k", 13).out


def test_initial_centres_from_a_file(run, blobs):
    np.save("start.npy", blobs[[0, 50, 100]])
    facts = json.loads(run("fit", "blobs.csv", "-k", 3, "--init", "start.npy", "--json").out)
    same = KMeans(3, init=blobs[[0, 50, 100]], n_init=1).fit(blobs)
    assert (facts["inertia"], facts["n_iter"]) == (same.inertia_, same.n_iter_)


def test_initial_centres_of_a_model(run, blobs):
    first = run("fit", "blobs.csv", "-k", 3, "--max-iter", 1, "--model", "first.npz", "--json")
    assert first.status == 0
    np.savetxt("turned.csv", blobs[:, ::-1], delimiter=",", header="c,b,a", comments="")
    for data in ("blobs.csv", "turned.csv"):
        ran = run("fit", data, "-k", 3, "--init", "first.npz", "--json")
        assert json.loads(ran.out)["inertia"] == pytest.approx(KMeans(3).fit(blobs).inertia_)
    few = run("fit", "blobs.csv", "-k", 2, "--init", "first.npz")
    assert "first.npz holds 3 centres of 3 columns; 2 of 3 are needed" in few.err
    for name in ("X", "centers"):
        np.savez("table.npz", **{name: blobs[:3]})
        assert run("fit", "blobs.csv", "-k", 3, "--init", "table.npz").status == 0
    np.savetxt("far.csv", 1e100 * blobs[:3], delimiter=",", header="a,b,c", comments="")
    assert run("fit", "far.csv", "-k", 3, "--model", "far.npz", "--init", "first").status == 0
    refused = run("fit", "blobs.csv", "-k", 3, "--dtype", "float32", "--init", "far.npz")
    assert refused.status == 2
    assert "far.npz: row 1" in refused.err
    assert "too large for float32" in refused.err
    np.savez("other.npz", a=blobs[:3], b=blobs[:3])
    assert "other.npz holds a, b" in run("fit", "blobs.csv", "-k", 3, "--init", "other.npz").err


def test_initial_centres_are_matched_by_name(run, folder):
    rows = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 100.0]
    np.savetxt("x.csv", rows, delimiter=",", header="leg,arm", comments="")
    np.savetxt("c.csv", rows[:3], delimiter=",", header="leg,arm", comments="")
    np.savetxt("turned.csv", rows[:3, ::-1], delimiter=",", header="arm,leg", comments="")
    np.savetxt("other.csv", rows[:3], delimiter=",", header="leg,nose", comments="")
    told = [
        json.loads(run("fit", "x.csv", "-k", 3, "--init", name, "--json").out)["inertia"]
        for name in ("c.csv", "turned.csv")
    ]
    assert told[0] == told[1]
    refused = run("fit", "x.csv", "-k", 3, "--init", "other.csv")
    assert refused.status == 2
    assert "other.csv" in refused.err
    assert "arm" in refused.err


@pytest.mark.parametrize("init", ["k-means++", "random", "first", "farthest", "k-means||"])
@pytest.mark.parametrize("algorithm", ["auto", "lloyd", "elkan", "hamerly"])
def test_algorithms_agree_and_obey_their_options(run, blobs, init, algorithm):
    ran = run(
        *("fit", "blobs.csv", "-k", 4, "--init", init, "--algorithm", algorithm, "--json"),
        *("--threads", 1, "--n-init", 2, "--device", "cpu"),
    )
    assert ran.status == 0, ran.err
    facts = json.loads(ran.out)
    same = KMeans(4, init=init, n_init=2, random_state=0).fit(blobs)
    assert facts["inertia"] == same.inertia_
    assert facts["device"] == "cpu"
    assert facts["algorithm"] == (same.algorithm_ if algorithm == "auto" else algorithm)


def test_max_iter_and_stop_rules(run, blobs):
    short = json.loads(run("fit", "blobs.csv", "-k", 12, "--max-iter", 1, "--json").out)
    assert (short["n_iter"], short["converged"]) == (1, False)
    full = json.loads(run("fit", "blobs.csv", "-k", 12, "--stop", "labels", "--json").out)
    early = json.loads(
        run("fit", "blobs.csv", "-k", 12, "--stop", "labels:0.9|centers:1e9", "--json").out
    )
    assert early["n_iter"] < full["n_iter"]
    assert full["converged"]


def test_pairs_from_standard_input(run):
    ran = run("fit", "-", "-k", 2, "--pairs", "--json", stdin=b"0 0 0\n1 9 9\n9 8\n")
    facts = json.loads(ran.out)
    assert (facts["n_samples"], facts["n_features"], facts["inertia"]) == (4, 2, 1.0)


def test_the_same_seed_gives_the_same_bytes(run, blobs, folder):
    for name in ("one", "two"):
        run("fit", "blobs.csv", "-k", 5, "--model", f"{name}.npz", "--threads", 1 + (name == "two"))
    assert (folder / "one.npz").read_bytes() == (folder / "two.npz").read_bytes()


def test_plot(run, blobs):
    pytest.importorskip("matplotlib")
    ran = run("fit", "blobs.csv", "-k", 3, "--plot", "p.png", "--json")
    assert ran.status == 0, ran.err
    with Image.open("p.png") as picture:
        seen = picture.convert("RGB").getcolors(2**20)
    from matplotlib.colors import to_rgb

    from lloydia.plots import BRIGHT

    shades = np.array([color for _, color in seen])
    for name in BRIGHT[:3]:
        ink = 255 * (0.8 * np.array(to_rgb(name)) + 0.2)  # over white at the opacity of the dots
        assert np.abs(shades - ink).max(axis=1).min() <= 2, f"no dot of the colour {name}"


def test_warning_is_one_line(run):
    ran = run("fit", "-", "-k", 2, stdin=b"1,1\n1,1\n1,1\n")
    assert ran.status == 0
    assert ran.err.startswith("lloydia: warning: Number of distinct clusters (1)")
    assert ran.err.count("\n") == 1
