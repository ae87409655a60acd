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
