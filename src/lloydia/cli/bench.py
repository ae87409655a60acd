"""`lloydia bench`: fits and seedings compared with other libraries, auto with every algorithm."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from lloydia.bench.machine import RESULTS
from lloydia.cli.options import FILE, OUTPUT, POSITIVE, Force, Json
from lloydia.cli.progress import progress
from lloydia.cli.report import print_json

if TYPE_CHECKING:
    from lloydia.bench.sheets import Row, Sheet

WIDEST = 250

bench = App(
    name="bench",
    help="""Time Lloydia and other libraries; a library with another result gets no time.

    Example: lloydia bench peers --cases iris 1M,16,64
    """,
)

Cases = Annotated[
    list[str] | None,
    Parameter(
        consume_multiple=True, negative="", help="Names of the cases to run; all by default."
    ),
]
Peers = Annotated[
    list[str] | None,
    Parameter(
        consume_multiple=True,
        negative="",
        help="Names of the libraries to compare with; all that are installed by default.",
    ),
]
Threads = Annotated[int, POSITIVE, Parameter(help="Threads of every library, on the CPU.")]
Rounds = Annotated[
    int | None,
    POSITIVE,
    Parameter(help="Number of rounds; by default as many as fit into the time of a case."),
]
Quick = Annotated[
    bool,
    Parameter(negative="", show_default=False, help="Use a tenth of the rows, and less time."),
]
Save = Annotated[
    bool,
    Parameter(group=OUTPUT, negative="", show_default=False, help=f"Save the times in {RESULTS}."),
]
Out = Annotated[
    Path | None,
    FILE,
    Parameter(
        group=OUTPUT, help="Save the times in this folder, in one folder for each processor."
    ),
]


@bench.command
def peers(
    *,
    cases: Cases = None,
    peers: Peers = None,
    mode: Annotated[
        list[Literal["iterations", "fits", "profile"]] | None,
        Parameter(
            consume_multiple=True,
            negative="",
            help="What to time: single iterations, whole fits, or kernels (profile, with --device "
            "cuda); by default the first two.",
        ),
    ] = None,
    device: Annotated[
        Literal["cpu", "cuda"], Parameter(help="Where to run: cuda is PyTorch's first GPU.")
    ] = "cpu",
    threads: Threads = 2,
    rounds: Rounds = None,
    quick: Quick = False,
    save: Save = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Time iterations and whole fits of Lloydia and every other library that is installed.

    The other libraries are scikit-learn, FAISS and scikit-learn-intelex (pip install faiss-cpu
    scikit-learn-intelex), SuperKMeans and mlpack.  All cases take about half an hour.  On a GPU
    they are flash-kmeans, if it is installed, and plain PyTorch, with other cases.

    Example: lloydia bench peers --cases 1M,16,64 --peers scikit-learn FAISS --threads 1
    """
    modes = tuple(mode or ("iterations", "fits"))
    if device == "cuda":
        _bench_on_device(modes, cases, peers, rounds, quick, save, out, json)
        return
    if "profile" in modes:
        raise ValueError("--mode profile needs --device cuda.")
    _bench("peers", modes, cases, peers, threads, rounds, quick, save, out, json)


@bench.command
def seeding(
    *,
    cases: Cases = None,
    peers: Peers = None,
    threads: Threads = 2,
    rounds: Rounds = None,
    quick: Quick = False,
    save: Save = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Time k-means++ of Lloydia, scikit-learn and FAISS.

    Example: lloydia bench seeding --rounds 3
    """
    _bench("seeding", ("seeding",), cases, peers, threads, rounds, quick, save, out, json)


@bench.command
def auto(
    *,
    cases: Cases = None,
    threads: Threads = 2,
    rounds: Rounds = None,
    quick: Quick = False,
    save: Save = False,
    out: Out = None,
    json: Json = False,
) -> None:
    """Time whole fits with auto and with every algorithm; count distances and memory.

    Example: lloydia bench auto --cases 1M,2,100 china
    """
    _bench("auto", ("auto",), cases, None, threads, rounds, quick, save, out, json)


@bench.command
def report(
    file: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="JSON lines that --save or --out wrote; by default peers.jsonl of this processor."
        ),
    ] = None,
    /,
    *,
    out: Annotated[
        Path | None,
        FILE,
        Parameter(
            group=OUTPUT, help="Folder for the table and the pictures; that of FILE by default."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write the newest run of FILE as a Markdown table and pictures.

    Pictures need matplotlib: pip install matplotlib.

    Example: lloydia bench report benchmarks/results/my-cpu/peers.jsonl --out report
    """
    from lloydia.bench.machine import shelf
    from lloydia.bench.report import write

    for path in write(file or shelf(RESULTS) / "peers.jsonl", out, force=force):
        print(path)


def _bench(
    name: str,
    modes: Sequence[str],
    cases: list[str] | None,
    chosen: list[str] | None,
    threads: int,
    rounds: int | None,
    quick: bool,
    save: bool,
    out: Path | None,
    json: bool,
) -> None:
    """Check the options and run on the processor."""
    _check(quick, save, out)
    from lloydia.bench.cases import choose
    from lloydia.bench.contest import QUICK, Patience
    from lloydia.bench.peers import choose as choose_peers
    from lloydia.bench.run import run

    wanted = choose(cases, ["fits"] if name == "auto" else modes)
    patience = replace(QUICK if quick else Patience(), rounds=rounds)
    some = partial(
        run,
        [case.tenth() for case in wanted] if quick else wanted,
        modes,
        choose_peers(chosen, modes),
        threads=threads,
        patience=patience,
    )
    _show(name, some, save, out, json)


def _bench_on_device(
    modes: Sequence[str],
    cases: list[str] | None,
    chosen: list[str] | None,
    rounds: int | None,
    quick: bool,
    save: bool,
    out: Path | None,
    json: bool,
) -> None:
    """Check the options and run on the GPU."""
    _check(quick, save, out)
    if not find_spec("torch"):
        raise ImportError("--device cuda needs PyTorch: pip install torch triton.")
    from lloydia.bench.device.cases import choose
    from lloydia.bench.device.contenders import choose as choose_contenders
    from lloydia.bench.device.contest import PATIENT, QUICK
    from lloydia.bench.device.run import device_name, run

    device_name("cuda")  # before anything is made
    wanted = choose(cases, modes)
    some = partial(
        run,
        [case.tenth() for case in wanted] if quick else wanted,
        modes,
        choose_contenders(chosen),
        device="cuda",
        patience=replace(QUICK if quick else PATIENT, rounds=rounds),
    )
    _show("peers", some, save, out, json)


def _check(quick: bool, save: bool, out: Path | None) -> None:
    if quick and (save or out):
        raise ValueError(
            "--quick shrinks the cases, so its figures are not kept: leave out --save and --out."
        )


def _show(
    name: str,
    run: Callable[..., Iterator[list[Row]]],
    save: bool,
    out: Path | None,
    json: bool,
) -> None:
    """Run, keep and print; fail if a result of ours does."""
    from lloydia.bench.machine import keep
    from lloydia.bench.sheets import sheets

    with progress("starting", json=json, timed=True) as shown:
        rows: list[Row] = []
        for some in run(step=shown.say):
            rows += some
            if save or out:
                kept = keep(name, some, out or RESULTS)
    if json:
        print_json({"rows": rows})
    else:
        print_sheets(sheets(rows))
    if save or out:
        print(f"kept in {kept}", file=sys.stderr)
    for row in rows:
        if row["peer"].startswith("Lloydia") and row["status"] in ("differs", "failed"):
            raise RuntimeError(f"{row['case']}: {row['peer']}: {row['reason']}")


def print_sheets(found: list[Sheet]) -> None:
    """Print tables and their notes."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, WIDEST)  # lines that are too long are the terminal's affair
    for sheet in found:
        table = Table(title=sheet.title, box=SIMPLE_HEAD, pad_edge=False, title_justify="left")
        for i, head in enumerate(sheet.heads):
            table.add_column(head, justify="right" if i else "left", no_wrap=True)
        for line in sheet.lines:
            table.add_row(*line)
        console.print(table)
        for note in sheet.notes:
            console.print(note, soft_wrap=True)
        console.print()
