from __future__ import annotations

import json

import pytest

from lloydia.bench.report import newest, write
from lloydia.bench.sheets import sheets

RATES = dict.fromkeys(("copy_gbs", "read_gbs", "gemm_float32_gflops", "gemm_float64_gflops"), 10.0)
FACTS = {
    "run": "2026-01-02",
    "threads": 2,
    "cores": 2,
    "system": "a",
    "load": 0.1,
    "rates": RATES,
    "cpu": "A Processor",
    "lloydia": "1",
    "python": "3",
    "numpy": "2",
}


def row(peer, ratio=None, mode="iterations", case="c", **more):
    shape = {"n": 1_000_000, "d": 2, "k": 3, "kind": "mixture", "dtype": "float32"}
    base = {"case": case, "mode": mode, "peer": peer, "status": "ok", "reason": "", **shape}
    base |= {"exact": True, "same_start": True, "inertia_ratio": 1.0, "floor_ms": 0.5}
    if ratio:
        timed = {"ms": 2.0 * ratio, "ratio": ratio, "ratio_quartiles": [ratio, ratio]}
        base |= {**timed, "rounds": 3, "n_iter": 9}
    return {**base, **FACTS, **more}


ROWS = [
    row("Lloydia lloyd", 1.0),
    row("FAISS", 3.0),
    row("scikit-learn lloyd", 4.0),
    row("gemm", 0.5, exact=False),
    row("SciPy kmeans2", status="slow", reason="over 9 s"),
    row("mlpack naive", status="not installed"),
    row("Lloydia auto", 1.0, "fits"),
    row("SuperKMeans", 0.5, "fits", exact=False, same_start=False, inertia_ratio=1.25),
    row("scikit-learn elkan", 2.5, "fits", rounds=1),
]


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "peers.jsonl"
    old = [{**row, "run": "2025-01-01", "case": "old"} for row in ROWS]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*old, *ROWS]))
    return path


def test_the_newest_run_is_written(kept, tmp_path):
    markdown, *pictures = write(kept, tmp_path / "report")
    text = markdown.read_text()
    assert "old" not in text
    assert "| c | 2.000 | FAISS | 6.000 | 3.00 |" in text
    assert "c: SciPy kmeans2 slow: over 9 s." in text
    assert "not installed: mlpack naive" in text
    assert "| SuperKMeans | 1.000 | 0.50 | 1.2500 |" in text
    assert "2.50*" in text
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.name in text
    assert [picture.name for picture in pictures] == ["peers-iterations.png", "peers-fits.png"]


def test_a_case_that_is_run_again_stays_in_its_place(tmp_path):
    path = tmp_path / "peers.jsonl"
    rows = [
        {"device": "a GPU", "mode": "iterations", "case": case, "run": run}
        for case, run in (("a", "1"), ("b", "1"), ("b", "2"), ("a", "3"), ("c", "3"))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = [(row["case"], row["run"]) for row in newest(path)]
    assert found == [("a", "3"), ("b", "2"), ("c", "3")]


def test_the_best_peer_is_exact():
    fits = next(sheet for sheet in sheets(ROWS) if sheet.title == "Whole fits")
    assert fits.lines[0][3] == "scikit-learn elkan"


@pytest.mark.parametrize(
    ("text", "what"),
    [("", "no run"), ("{\n", "line 1 is not JSON"), ('{"n": 1}\n3\n', "no run")],
)
def test_what_is_no_run_is_said(tmp_path, text, what):
    path = tmp_path / "peers.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=what):
        newest(path)


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "rows.npy"
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"rows\.npy is not text: name a file of JSON lines"):
        newest(path)
