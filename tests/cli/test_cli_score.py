from __future__ import annotations

import json

import numpy as np
import pytest
import sklearn.metrics as reference


@pytest.fixture
def labels(blobs):
    labels = np.repeat([0, 1, 2], 40)
    labels[::7] = 1
    return labels


@pytest.mark.parametrize("kind", ["npy", "csv", "words.txt"])
def test_scores_are_those_of_scikit_learn(run, blobs, labels, kind):
    if kind == "npy":
        np.save("l.npy", labels)
    elif kind == "csv":
        np.savetxt("l.csv", labels, fmt="%d", header="label", comments="")
    else:
        np.savetxt("l.words.txt", np.array(["one", "two", "three"])[labels], fmt="%s")
    ran = run("score", "blobs.csv", f"l.{kind}", "--json")
    assert (ran.status, ran.err) == (0, "")
    facts = json.loads(ran.out)
    assert facts["n_clusters"] == 3
    assert facts["silhouette"] == pytest.approx(reference.silhouette_score(blobs, labels), 1e-10)
    for name in ("calinski_harabasz", "davies_bouldin"):
        value = getattr(reference, f"{name}_score")(blobs, labels)
        assert facts[name] == pytest.approx(value, 1e-10)


@pytest.mark.parametrize(("device", "said"), [("tpu", "Unknown device 'tpu'"), ("cuda:99", "cpu")])
def test_devices_that_are_not_there(run, blobs, labels, device, said):
    np.save("l.npy", labels)
    ran = run("score", "blobs.csv", "l.npy", "--device", device)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_sample(run, blobs, labels):
    np.save("l.npy", labels)
    facts = json.loads(run("score", "blobs.csv", "l.npy", "--sample", 50, "--json").out)
    expected = reference.silhouette_score(blobs, labels, sample_size=50, random_state=0)
    assert facts["silhouette"] == pytest.approx(expected, 1e-10)
    assert facts["silhouette_sample"] == 50


def test_words_need_no_header(run, blobs, labels):
    words = np.array(["one", "two", "three"])[labels]
    for header in ("", "label"):
        np.savetxt("l.txt", words, fmt="%s", header=header, comments="")
        text = run("score", "blobs.csv", "l.txt").out
        assert "silhouette" in text
        assert "n clusters         3" in text


def test_one_cluster_has_no_score(run, blobs):
    np.save("l.npy", np.zeros(120, int))
    ran = run("score", "blobs.csv", "l.npy")
    assert ran.status == 2
    assert ran.err.count("\n") == 1


TABLE = 'id,name,age,income\na7,Ann Lee,30,"1,200"\nb9,Bo Po,40,"2,300"\nc4,Cy Do,50,"12,300"\n'


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("ids", [(), ("--id", "id"), ("--id", "1")])
def test_the_whole_table_that_fit_writes(run, folder, mark, ids):
    text = "\n".join(mark.join(line.split(",", 3)) for line in TABLE.splitlines())
    (folder / "t.csv").write_text(text, encoding="utf-8")
    chosen = ("--columns", "age,income", "--thousands", ",", *ids)
    assert run("fit", "t.csv", "-k", 2, *chosen, "--out", "o.csv", "--labels", "l.csv").status == 0
    scores = [run("score", "t.csv", labels, *chosen, "--json") for labels in ("o.csv", "l.csv")]
    assert [ran.status for ran in scores] == [0, 0]
    facts = [json.loads(ran.out) for ran in scores]
    assert facts[0]["silhouette"] == facts[1]["silhouette"]
    assert facts[0]["n_clusters"] == 2
    if ids:
        changed = (folder / "o.csv").read_text(encoding="utf-8").replace("b9", "x9")
        (folder / "o.csv").write_text(changed, encoding="utf-8")
        assert "row 2 has the id 'x9'" in run("score", "t.csv", "o.csv", *chosen).err


@pytest.mark.parametrize("ids", [(), ("--id", "id")])
def test_the_whole_table_of_parquet(run, folder, ids):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"id": ["a", "b", "c"], "x": [1, 2, 30], "s": ["u", "v", "w"]})
    parquet.write_table(table, folder / "t.parquet")
    chosen = ("--columns", "x", *ids)
    assert run("fit", "t.parquet", "-k", 2, *chosen, "--out", "o.parquet").status == 0
    ran = run("score", "t.parquet", "o.parquet", *chosen, "--json")
    assert (ran.status, json.loads(ran.out)["n_clusters"]) == (0, 2)


def test_a_table_without_clusters_is_no_labels(run, folder):
    (folder / "t.csv").write_text("a,b,group\n1,2,0\n3,4,1\n9,9,1\n", encoding="utf-8")
    for ids in ((), ("--id", "a")):
        ran = run("score", "t.csv", "t.csv", "--columns", "b", *ids)
        assert ran.status == 2
        assert "t.csv has 3 columns; labels" in ran.err
        assert "or the column 'cluster' of a table with a header." in ran.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,cluster\n1,0\n2,\n3,1\n", "line 3 is missing; every row needs a label"),
        ("a,cluster\n1,0\n2\n3,1\n", "line 3 has 1 cell where the header has 2"),
        ("a,cluster\n1,0\n3,1\n", "holds 2 labels for the 3 rows"),
        ("a,cluster\n", "holds 0 labels for the 3 rows"),
    ],
)
def test_tables_of_clusters_that_are_wrong(run, folder, text, says):
    (folder / "t.csv").write_text("a\n1\n2\n3\n", encoding="utf-8")
    (folder / "o.csv").write_text(text, encoding="utf-8")
    ran = run("score", "t.csv", "o.csv")
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert says in ran.err
