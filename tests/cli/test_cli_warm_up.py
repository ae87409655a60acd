"""`lloydia warm-up`: later fits compile nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lloydia.algorithms import ALGORITHMS
from lloydia.backends.cpu.runtime.compiled import kernel, subroutine
from lloydia.cli.compilation.fits import fits, rows_of_shape
from lloydia.cli.compilation.kernels import compiled_for_cpu
from lloydia.cli.info import Shape

pytestmark = pytest.mark.slow

SHAPE = ("--shapes", "150,4,3", "--dtype", "float64")
LATER = """
from sklearn.datasets import load_iris
from lloydia import KMeans
from lloydia.cli.compilation.kernels import compiled_for_cpu
with compiled_for_cpu() as taken:
    iris = load_iris(as_frame=True).data
    KMeans(3, algorithm="elkan", random_state=0, n_threads=1).fit(iris)
    KMeans(3, init="random", n_init=2, random_state=0).fit(iris.to_numpy().copy(), None, iris.index)
    print(taken())
"""


def test_what_is_compiled_is_listed_once():
    @subroutine
    def part(x):
        return x + 1

    @kernel
    def whole(x):
        return part(x)

    whole._cache.flush()
    with compiled_for_cpu() as taken:
        assert whole(1) == 2
        assert whole(2) == 3
        assert taken() == ["whole"]
        whole(1.5)
        assert taken() == ["whole"]
        assert taken() == []
    whole(1j)
    assert taken() == []


def test_a_second_run_and_later_fits_compile_nothing(run):
    first = run("warm-up", *SHAPE)
    assert first.status == 0
    second = run("warm-up", *SHAPE)
    assert second.status == 0
    told = second.out.splitlines()
    assert told[0] == "nothing left to compile"
    assert told[1].startswith("compiled kernels are in /")
    assert second.err == ""
    later = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True)
    assert later.stdout.strip() == "[]", later.stderr


def test_what_is_compiled_is_printed(run, monkeypatch):
    @kernel
    def fresh(x):
        return x + 1

    def fits(X, k, device):
        assert X.shape == (150, 4)
        assert device == "cpu"
        return [
            ("lloyd", lambda: fresh(k)),
            ("elkan", lambda: fresh(float(k))),
            ("auto", lambda: fresh(k)),
        ]

    fresh._cache.flush()
    monkeypatch.setattr("lloydia.cli.compilation.warm_up.fits", fits)
    ran = run("warm-up", *SHAPE)
    case, total, folder = ran.out.splitlines()
    assert case.startswith("float64, 150 x 4, k = 3: 2 kernels in ")
    assert case.endswith(" s (lloyd 1, elkan 1)")
    assert total.startswith("2 kernels compiled in ")
    facts = json.loads(run("warm-up", *SHAPE, "--json").out)
    assert facts.pop("seconds") > 0
    assert facts.pop("folder") == folder.removeprefix("compiled kernels are in ")
    assert facts["cases"][0].pop("seconds") > 0
    case = {"dtype": "float64", "shape": [150, 4, 3], "kernels": {}}
    assert facts == {"device": "cpu", "compiled": 0, "cases": [case]}


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ("40,10", "'40,10' is not ROWS,FEATURES,CLUSTERS"),
        ("4,10,5", "5 clusters of 4 rows: there are at most as many clusters as rows"),
        ("4,0,2", "0 features"),
        ("4,2.5,2", "2.5"),
    ],
)
def test_a_wrong_shape_is_an_error(run, shape, why):
    ran = run("warm-up", "--shapes", "150,4,3", shape)
    assert ran.status == 2
    assert ran.out == ""
    assert ran.err.startswith("lloydia: --shapes: ")
    assert why in ran.err


def test_rows_on_the_cpu_are_few_and_no_fewer_than_clusters():
    assert rows_of_shape(Shape(10**9, 3, 5), "float32", "cpu").shape == (20_000, 3)
    assert rows_of_shape(Shape(10**9, 2, 30_000), "float64", "cpu").shape == (30_000, 2)
    assert rows_of_shape(Shape(30, 2, 5), "float64", "cpu").shape == (30, 2)


def test_algorithms_that_take_the_rows():
    for d, missing in ((256, set()), (257, {"filtering"})):
        X = rows_of_shape(Shape(30, d, 2), "float32", "cpu")
        assert set(ALGORITHMS) - {name for name, _ in fits(X, 2, "cpu")} == missing
