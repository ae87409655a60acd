"""benchmarks/guide_tables.py: tables of guides are those of the kept measurements."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = runpy.run_path(str(ROOT / "benchmarks/guide_tables.py"))


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setitem(MODULE["written"].__globals__, "RESULTS", tmp_path)

    def keep(*rows):
        path = tmp_path / MODULE["SEEDING_CPU"]
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    return keep


def lines(seconds, when):
    case = {"n": 1000, "d": 2, "k": 3, "rank": None, "when": when}
    libraries = "Lloydia", "scikit-learn", "FAISS, one draw a centre"
    return [case | {"what": what, "processor_s": s} for what, s in zip(libraries, seconds)]


PAGE = "Before.\n\n<!-- table: seeding by other libraries -->\n| an old table |\n\nAfter.\n"


def test_the_newest_measurements_are_written(kept):
    kept(*lines((0.15, 30.41, 4.0), "2026-02-02"), *lines((9, 9, 9), "2026-01-01"))
    assert MODULE["written"](PAGE) == (
        "Before.\n\n<!-- table: seeding by other libraries -->\n"
        "| rows, features, clusters | Lloydia | scikit-learn | FAISS |\n"
        "| --- | --- | --- | --- |\n"
        "| 1,000, 2, 3 | 0.15 | 30 | 4.0 |\n\nAfter.\n"
    )


def test_a_measurement_that_is_lacking_is_named(kept):
    kept(*lines((0.15, 30.41), "2026-02-02"))
    with pytest.raises(ValueError, match=r"has no FAISS, one draw a centre of \(1000, 2, 3\)"):
        MODULE["written"](PAGE)


def test_first_fits_have_a_line_for_each_shape(kept, tmp_path):
    page = PAGE.replace("seeding by other libraries", "first fits on a gpu")
    # Nothing was measured yet.
    assert MODULE["written"](page) == page
    path = tmp_path / MODULE["FIRST_FITS"]
    path.parent.mkdir()
    wanted = MODULE["TABLES"]["first fits on a gpu"].columns.values()
    figures = [
        {"what": f"{what} (9 x 2, float32, k = 3)", "seconds": 0.5, "kernels": 7, "device": "A GPU"}
        for what in {what for what, _ in wanted}
    ]
    figures.append({**figures[0], "what": "flash-kmeans, first fit, empty cache (9 x 2)"})
    path.write_text("".join(json.dumps(row | {"when": "2026-01-01"}) + "\n" for row in figures))
    (last,) = [line for line in MODULE["written"](page).splitlines() if line.startswith("| 9")]
    assert last == "| 9 x 2, float32, k = 3 | 7 |" + " 0.50 |" * 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(36, "36"), (118.7, "119"), (6.14, "6.1"), (0.031, "0.031"), (-1e-5, "< 0.01")],
)
def test_numbers_have_two_digits_or_all_of_their_integral_part(value, text):
    assert MODULE["number"](value) == text


def test_guides_have_what_is_kept():
    texts = [page.read_text(encoding="utf-8") for page in MODULE["GUIDES"].glob("*.md")]
    marked = {mark[1] for text in texts for mark in MODULE["MARK"].finditer(text)}
    assert marked == MODULE["TABLES"].keys()
    assert [MODULE["written"](text) for text in texts] == texts
