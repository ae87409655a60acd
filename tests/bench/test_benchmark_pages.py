"""benchmarks/pages.py: every kept measurement has its place on a page, the newest of each alone."""

import json
import runpy
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "benchmarks" / "pages.py"
FACTS = {"cpu": "Some Processor", "cores": 2, "system": "Linux", "python": "3.12", "numpy": "2.3"}


@pytest.fixture
def pages(tmp_path, monkeypatch):
    module = runpy.run_path(str(PAGES))
    monkeypatch.setitem(module["main"].__globals__, "RESULTS", tmp_path / "results")
    (tmp_path / "results/some-processor").mkdir(parents=True)

    def write(name, *rows):
        path = tmp_path / f"results/some-processor/{name}.jsonl"
        path.write_text("".join(json.dumps(FACTS | row) + "\n" for row in rows))

    def made():
        (page,) = module["main"](tmp_path / "pages")
        return page.read_text(encoding="utf-8")

    return write, made


def test_newest_of_each_line(pages):
    write, made = pages
    write(
        "cluster",
        {
            "n": 5,
            "d": 1,
            "k": 2,
            "contender": "ours",
            "seconds": 2.0,
            "when": "2026-01-02T00:00:00",
        },
        {
            "n": 5,
            "d": 1,
            "k": 2,
            "contender": "ours",
            "seconds": 9.0,
            "when": "2026-01-01T00:00:00",
        },
        {
            "n": 5,
            "d": 1,
            "k": 2,
            "contender": "other",
            "seconds": 3.25,
            "when": "2026-01-01T00:00:00",
        },
    )
    text = made()
    assert text.startswith("# Some Processor\n")
    assert "| ours | 5 | 1 | 2 |  | 2 |" in text
    assert "| other | 5 | 1 | 2 |  | 3.25 |" in text
    assert "| 9 |" not in text
    assert "2 cores of Some Processor, Linux, 2026-01-01, 2026-01-02. Python 3.12," in text


@pytest.mark.parametrize(("device", "place"), [(None, "2 cores"), ("A GPU", "A GPU, with 2 cores")])
def test_the_machine_is_named(pages, device, place):
    write, made = pages
    write("startup", {"what": "a fit", "seconds": 1.5, "device": device, "when": "2026-01-02"})
    assert f"- {place} of Some Processor, Linux" in made()


def test_a_file_without_a_table_is_named(pages):
    write, made = pages
    write("novelty", {"when": "2026-01-01"})
    with pytest.raises(ValueError, match="no table is defined for novelty"):
        made()


def test_every_kept_file_has_a_table():
    module = runpy.run_path(str(PAGES))
    kept = {path.stem for path in PAGES.parent.glob("results/*/*.jsonl")}
    assert kept
    assert kept <= {*module["CONTESTS"], *module["SCRIPTS"]}
