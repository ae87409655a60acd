"""Commands on sparse matrices, compressed text and Arrow's files."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest
import scipy.sparse as sp

A = np.array([[0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4.0]])


@pytest.fixture
def tables(folder):
    """The same table as text and as a sparse matrix."""
    np.savetxt("dense.csv", A, delimiter=",")
    sp.save_npz("sparse.npz", sp.csr_matrix(A))
    (folder / "dense.csv.gz").write_bytes(gzip.compress((folder / "dense.csv").read_bytes()))


def bare(out):
    facts = json.loads(out)
    return {name: facts[name] for name in facts if "seconds" not in name}


@pytest.mark.parametrize("data", ["sparse.npz", "dense.csv.gz"])
def test_fit_predict_and_score_are_those_of_the_dense_table(run, folder, tables, data):
    outputs = ("--labels", "labels.csv", "--centers", "centers.npy", "--model", "model.npz")
    found = []
    for table in ("dense.csv", data):
        ran = run("fit", table, "-k", 2, "--json", *outputs)
        assert (ran.status, ran.err) == (0, "")
        predicted = run("predict", "model.npz", table)
        scored = run("score", table, "labels.csv", "--json")
        files = (folder / "labels.csv").read_bytes(), np.load("centers.npy").tobytes()
        found.append((bare(ran.out), files, predicted.out, bare(scored.out)))
    assert found[0] == found[1]
    assert found[0][0]["inertia"] == pytest.approx(8 / 3)


def test_a_sparse_matrix_from_standard_input_and_as_start(run, folder, tables):
    sp.save_npz("start.npz", sp.csc_array(A[[0, 5]]))
    data = (folder / "sparse.npz").read_bytes()
    ran = run("fit", "-", "-k", 2, "--init", "start.npz", "--json", stdin=data)
    assert ran.status == 0
    assert json.loads(ran.out)["inertia"] == pytest.approx(8 / 3)


def test_a_sparse_matrix_is_drawn(run, folder, tables):
    pytest.importorskip("matplotlib")
    assert run("fit", "sparse.npz", "-k", 2, "--plot", "sparse.png").status == 0
    assert (folder / "sparse.png").stat().st_size > 1000


def test_arrow(run, folder):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame(A, columns=["u", "v"]).to_feather("table.feather")
    pd.DataFrame({"label": [0, 0, 0, 1, 1, 1]}).to_feather("labels.feather")
    ran = run("fit", "table.feather", "-k", 2, "--columns", "v", "--json")
    assert (ran.status, json.loads(ran.out)["n_features"]) == (0, 1)
    assert run("score", "table.feather", "labels.feather").status == 0


def test_compressed_outputs_are_refused(run, folder, tables):
    ran = run("fit", "dense.csv", "-k", 2, "--labels", "labels.csv.gz")
    assert ran.status == 2
    assert ran.err.startswith("lloydia: cannot write labels.csv.gz: its extension must be one of")
    assert not (folder / "labels.csv.gz").exists()


@pytest.mark.parametrize("data", ["sparse.npz", "dense.csv.gz", "x.feather", "x.xlsx", "x.json"])
def test_what_is_not_read_by_blocks(run, folder, tables, data):
    (folder / "x.feather").write_bytes(b"")
    (folder / "x.xlsx").write_bytes(b"")
    (folder / "x.json").write_bytes(b"")
    ran = run("fit", data, "-k", 2, "--memory", "1GB")
    assert ran.status == 2
    assert ran.err.startswith(f"lloydia: {data} is")
    assert "not read by blocks" in ran.err
    assert "lambda" not in ran.err


def test_an_image_given_to_fit(run, folder):
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (4, 4)).save(stream, "PNG")
    (folder / "photo.png").write_bytes(stream.getvalue())
    ran = run("fit", "photo.png", "-k", 2)
    assert ran.status == 2
    says = "photo.png is a PNG picture, not text; lloydia segment and quantize take pictures."
    assert ran.err == f"lloydia: {says}\n"
