"""Names that may be meant, and words for the place where a message is printed."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from lloydia import KMeans
from lloydia.backends import choose, put
from lloydia.images.color import space
from lloydia.spelling import either, meant, near, on_command_line
from lloydia.stopping import parse

OPTIONS = ("--columns", "--labels", "--plot", "--seed", "--max-iter", "--model", "--n-init", "-k")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("--colums", "--columns"),
        ("--lables", "--labels"),
        ("--LABELS", "--labels"),
        ("--max_iter", "--max-iter"),
        ("--iter", "--max-iter"),
        ("--random-seed", "--seed"),
        ("--col", "--columns"),
        ("--K", "-k"),
        ("--out", None),
        ("--scale", None),
        ("--m", None),
        ("--", None),
        (3, None),
    ],
)
def test_near(given, found):
    assert near(given, OPTIONS) == found


def test_other_words_of_the_same_thing():
    same = {"n-clusters": "-k", "n-jobs": "--threads"}
    assert near("--n_clusters", OPTIONS, same) == "-k"
    assert near("--n-jobs", OPTIONS, same) is None  # there is no --threads


def test_the_place_of_a_message():
    assert meant("lable", ["label"]) == "; did you mean 'label'?"
    assert either("python", "command") == "python"
    with on_command_line():
        assert meant("lable", ["label"]) == "; did you mean label?"
        assert either("python", "command") == "command"
    assert meant("x", ["label"]) == "."


X = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"device": "gpu"}, "cuda"),
        ({"device": "GPU"}, "cuda"),
        ({"device": "nvidia"}, "cuda"),
        ({"device": "CUDA"}, "cuda"),
        ({"device": "cuda0"}, "cuda:0"),
        ({"device": "GPU:1"}, "cuda:1"),
        ({"device": "CPU"}, "cpu"),
        ({"algorithm": "hamerley"}, "hamerly"),
        ({"algorithm": "Elkan"}, "elkan"),
        ({"algorithm": "full"}, "lloyd"),
        ({"init": "kmeans++"}, "k-means++"),
        ({"init": "k-means"}, "k-means++"),
        ({"init": "kmeans||"}, "k-means||"),
        ({"init": "forgy"}, "random"),
        ({"empty": "relocated"}, "relocate"),
    ],
)
def test_values_near_a_choice(parameters, found):
    with pytest.raises(ValueError, match=f"; did you mean {re.escape(repr(found))}\\?$"):
        KMeans(2, **parameters).fit(X)


@pytest.mark.parametrize(
    "parameters", [{"device": "tpu"}, {"device": "mps"}, {"algorithm": "brute"}, {"init": "pca"}]
)
def test_values_near_nothing(parameters):
    with pytest.raises(ValueError, match=r"[^?]\.$"):
        KMeans(2, **parameters).fit(X)


def test_other_choices():
    with pytest.raises(ValueError, match=r"'auto', 'cpu', 'cuda' or 'cuda:N'; did you mean 'cuda'"):
        put("gpu", X)
    with pytest.raises(ValueError, match=r"joined by '\|'; did you mean 'labels'\?$"):
        parse("label:0.1")
    with pytest.raises(ValueError, match=r"it needs a number; write inertia:0.001.$"):
        parse("inertia")
    with pytest.raises(ValueError, match=r"Oklab; did you mean 'Lab'\?$"):
        space("CIELab")


def test_advice_works_in_its_place():
    with pytest.raises(ValueError, match=r"device='cpu', or X.toarray\(\)\.$"):
        choose("cuda", sp.csr_matrix(X), None, None)
    with on_command_line(), pytest.raises(ValueError, match=r"--device cpu, or save the rows"):
        choose("cuda", sp.csr_matrix(X), None, None)
