"""`lloydia ladder`: the rungs, the five systems' experiments, and the page that shows them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from cyclopts import App, Parameter

from lloydia.bench.machine import RESULTS
from lloydia.cli.options import FILE, OUTPUT, POSITIVE, Force, Json
from lloydia.cli.own_data import Own
from lloydia.cli.progress import progress
from lloydia.cli.reading import Reading
from lloydia.cli.report import print_json
from lloydia.spelling import meant

if TYPE_CHECKING:
    from lloydia.ladder.experiments.measurement import Measurement

PAGE = Path("docs/ladder.md")
Where = Literal["cpu", "cuda", "all"]

ladder = App(
    name="ladder",
    help="""Run the ladder: short k-means programs for students, after five documents.

    Each program (a rung) changes one thing of an earlier one. The documents are a thesis (T),
    a tutorial (A), a course project (B) and two student reports (C and D); docs/ladder.md has
    what they measured and what these programs take.

    Example: lloydia ladder run A --scale 0.1 --out mine
    """,
)


def any_case(type_: type, tokens: Sequence[Any]) -> str:
    """Convert the text of an argument to one of its choices, in small letters or capitals."""
    text = tokens[0].value
    choices = {choice.lower(): choice for choice in get_args(type_)}
    if text.lower() not in choices:
        listed = ", ".join(choices.values())
        # The parser ends the sentence.
        hint = meant(text, choices.values()).rstrip(".")
        raise ValueError(f"{text!r} is not one of {listed}{hint}")
    return choices[text.lower()]


@ladder.command(name="list")
def rungs(*, json: Json = False) -> None:
    """List the rungs: name, the letters of the documents that have it, where it runs, what it is.

    Example: lloydia ladder list
    """
    from lloydia.ladder.device import INSTALLED

    rows = _rungs()
    if json:
        print_json({"rungs": rows})
        return
    widths = [max(len(row[name]) for row in rows) for name in ("rung", "systems", "where")]
    for row in rows:
        told = [row[name].ljust(width) for name, width in zip(("rung", "systems", "where"), widths)]
        print("  ".join([*told, row["title"]]).rstrip())
    if not INSTALLED:
        print("Rungs on cuda, but for Lloydia's own, need pip install numba-cuda.", file=sys.stderr)


@ladder.command
def run(
    *experiments: Annotated[
        Literal["walk", "T", "A", "B", "C", "D"],
        Parameter(
            converter=any_case,
            help="T, A, B, C or D: the experiment of that document; walk: every rung on one "
            "problem.",
        ),
    ],
    where: Annotated[
        Where,
        Parameter(
            help="Which rungs to run: those on the CPU, those on the GPU (with a few on the CPU to "
            "compare with), or all."
        ),
    ] = "cpu",
    scale: Annotated[
        float,
        Parameter(
            help="Factor for the sizes of the experiment, at most 1; 32 rows are kept, and few "
            "rows get fewer clusters. Needs --out."
        ),
    ] = 1.0,
    out: Annotated[
        Path | None,
        FILE,
        Parameter(
            group=OUTPUT,
            help=f"Folder for the times, with one folder for each machine; {RESULTS} by default, "
            "and none for data of your own.",
        ),
    ] = None,
    own: Own = Own(),  # noqa: B008 - frozen
    reading: Reading = Reading(),  # noqa: B008 - frozen
    json: Json = False,
) -> None:
    """Run experiments: check the result of each rung, time it, and save the time at once.

    Rungs on a GPU need numba-cuda: pip install numba-cuda.

    Example: lloydia ladder run T --where cuda

    Example: lloydia ladder run T --data sample.txt -k 20

    Example: lloydia ladder run C --points 2000 -k 100 --rung 53
    """
    if not experiments:
        raise ValueError("ladder run needs an experiment: walk, T, A, B, C or D.")
    if out is not None:
        _check_folder(out)
    if own.given:
        rows, kept = _on_own_data(experiments, where, scale, out, own, reading)
    else:
        rows, kept = _as_documented(experiments, where, scale, out)
    if json:
        print_json({"rows": [found.row() for found in rows]})
    else:
        from lloydia.ladder.experiments.figures import line

        for found in rows:
            print(line(found))
    for path in dict.fromkeys(kept):
        print(f"kept in {path}", file=sys.stderr)


def _as_documented(
    experiments: Sequence[str], where: Where, scale: float, out: Path | None
) -> tuple[list[Measurement], list[Path]]:
    """Run the documents' experiments, and keep what was measured."""
    from lloydia.ladder.experiments import run as run_all
    from lloydia.ladder.experiments.lab import Lab

    if not 0 < scale <= 1:
        raise ValueError(f"--scale must be more than 0 and at most 1, not {scale:g}.")
    if scale < 1 and out is None:
        raise ValueError(
            f"--scale {scale:g} shrinks the experiment, so its figures do not belong in {RESULTS}: "
            "name a folder with --out."
        )
    with progress("starting", timed=True) as shown:
        lab = Lab(where, scale, shown.say)
        both = list(run_all(experiments, lab, out or RESULTS))
    return [found for found, _ in both], [path for _, path in both]


def _on_own_data(
    experiments: Sequence[str],
    where: Where,
    scale: float,
    out: Path | None,
    own: Own,
    reading: Reading,
) -> tuple[list[Measurement], list[Path]]:
    """Run rungs on the user's own data, and keep what was measured where a folder is named."""
    from lloydia.ladder import where as place_of
    from lloydia.ladder.experiments.lab import Lab
    from lloydia.ladder.experiments.measurement import keep

    if scale != 1:
        raise ValueError(
            "--scale shrinks an experiment, and data of your own has the size it has: leave it out."
        )
    rungs = own.names()
    if any(place_of(rung) == "cuda" for rung in rungs) and where == "cpu":
        where = "all"
    with progress("starting", timed=True) as shown:
        lab = Lab(where, step=shown.say)
        lab.device  # says at once that there is no GPU  # noqa: B018
        rows = [row for name in experiments for row in own.measure(name, lab, reading, rungs)]
    return rows, [keep(row, out) for row in rows] if out else []


@ladder.command
def report(
    *,
    results: Annotated[
        Path, FILE, Parameter(help="The folder with the times that lloydia ladder run saved.")
    ] = RESULTS,
    page: Annotated[
        Path,
        FILE,
        Parameter(
            group=OUTPUT,
            help="The page to rewrite the tables of, or a new one. The pictures go to a folder of "
            "the same name beside it.",
        ),
    ] = PAGE,
    force: Force = False,
) -> None:
    """Rewrite the tables of a page, and draw its pictures, from all saved times.

    Pictures need matplotlib: pip install matplotlib.

    Example: lloydia ladder report
    """
    from lloydia.ladder.experiments.report import write

    if page == PAGE and not page.exists():
        raise ValueError(
            f"{page} is not there: run this in a clone, or name a page, which may be new, with "
            "--page."
        )
    if not page.parent.is_dir():
        raise ValueError(f"cannot write {page}: there is no folder {page.parent}.")
    for path in write(results, page, force=force):
        print(path)


@ladder.command
def dump(
    *,
    rows: Annotated[
        int, POSITIVE, Parameter(help="Number of points, uniform in the unit square.")
    ] = 2346,
    clusters: Annotated[
        int,
        POSITIVE,
        Parameter(
            ("--clusters", "-k", "--k"),
            help="Number of clusters; as many first points are the initial centres.",
        ),
    ] = 16,
    rung: Annotated[
        str,
        Parameter(
            help="Rung to run, by number or name (see lloydia ladder list); not one of Elkan's or "
            "Hamerly's."
        ),
    ] = "r01_lloyd",
    every: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Write a file after every iteration, not only after the last.",
        ),
    ] = False,
    out: Annotated[Path, FILE, Parameter(group=OUTPUT, help="Folder for the text files.")] = Path(
        "dump"
    ),
    force: Force = False,
    json: Json = False,
) -> None:
    """Write the centres, labels and points of a run as text, as document C's program does.

    Example: lloydia ladder dump --rows 732 -k 8 --every
    """
    from lloydia.data.outputs import refuse_others
    from lloydia.ladder import called, where
    from lloydia.ladder.experiments.c import MOST, RULE
    from lloydia.ladder.experiments.dump import FILES
    from lloydia.ladder.experiments.dump import dump as written
    from lloydia.ladder.experiments.lab import gpu
    from lloydia.ladder.experiments.uniform import square

    if clusters > rows:
        raise ValueError(f"-k {clusters} asks for more clusters than the {rows} points.")
    _check_folder(out)
    if not force:
        for path in sorted(out.glob(FILES)):
            refuse_others(path)
    rung = called(rung)
    if on_gpu := where(rung) == "cuda":
        gpu()
    X = square(rows, on_gpu=on_gpu)
    paths = []
    files = written(
        out, X, X[:clusters], rung=rung, rule=RULE, max_iter=MOST, every=every, force=force
    )
    for path in files:
        paths.append(str(path))
        if not json:
            print(path)
    if json:
        print_json({"files": paths})


def _check_folder(out: Path) -> None:
    """Refuse what cannot be a folder, before any work is done for it."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"cannot write into {out}: it is not a folder; name one.")


def _rungs() -> list[dict[str, str]]:
    from lloydia.ladder import named, names

    abouts = ((name, named(name).ABOUT) for name in names())
    return [
        {"rung": name, "systems": about.systems, "where": about.where, "title": about.title}
        for name, about in abouts
    ]
