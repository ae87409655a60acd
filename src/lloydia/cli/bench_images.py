"""`lloydia bench images`: colour quantisation compared with other libraries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lloydia.bench.machine import RESULTS
from lloydia.cli.bench import Out, Peers, Save, Threads, print_sheets
from lloydia.cli.options import FILE, OUTPUT, POSITIVE, Force, Json
from lloydia.cli.progress import progress
from lloydia.cli.report import print_json

PICTURES = ("quantize-peers.png", "quantize-dither.png", "quantize-speed.png")


def images(
    *,
    photographs: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            negative="",
            help="Names of the photographs to reduce; all by default.",
        ),
    ] = None,
    peers: Peers = None,
    sizes: Annotated[
        list[int] | None,
        Parameter(
            consume_multiple=True, negative="", help="Numbers of colours; by default 8 16 64 256."
        ),
    ] = None,
    threads: Threads = 1,
    rounds: Annotated[
        int,
        POSITIVE,
        Parameter(help="Largest number of rounds; a library that took a second does no more."),
    ] = 5,
    save: Save = False,
    out: Out = None,
    pictures: Annotated[
        Path | None,
        FILE,
        Parameter(group=OUTPUT, help="Folder for the chart and the sheets of pictures."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Time the reduction of photographs to k colours by Lloydia and other libraries.

    The other libraries are Pillow, scikit-learn, OpenCV and libimagequant; the tables say which of
    them are not installed.  The photographs come with scikit-learn and scikit-image.

    Example: lloydia bench images --photographs china --peers Pillow libimagequant --sizes 16
    """
    from lloydia.bench.images.contenders import choose
    from lloydia.bench.images.photographs import present
    from lloydia.bench.images.report import image_sheets
    from lloydia.bench.images.run import SIZES, run
    from lloydia.bench.machine import keep
    from lloydia.data.outputs import check_output

    if wrong := [k for k in sizes or () if not 2 <= k <= 256]:
        raise ValueError(f"--sizes {wrong[0]}: a palette has 2 to 256 colours.")
    names, contenders = list(present(photographs)), choose(peers)
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        for name in PICTURES:
            check_output(pictures / name, (".png",), force=force)
    with progress("starting", json=json, timed=True) as shown:
        rows = []
        for some in run(
            names,
            sizes or SIZES,
            contenders,
            threads=threads,
            rounds=rounds,
            step=shown.say,
        ):
            rows += some
            if save or out:
                kept = keep("images", some, out or RESULTS)
    if json:
        print_json({"rows": rows})
    else:
        print_sheets(image_sheets(rows))
    if save or out:
        print(f"kept in {kept}", file=sys.stderr)
    if pictures is not None:
        _draw(rows, names, pictures, force)


def _draw(rows: list[dict], names: list[str], folder: Path, force: bool) -> None:

    from lloydia.bench.images import contact
    from lloydia.bench.images.contenders import CONTENDERS
    from lloydia.bench.images.photographs import photograph
    from lloydia.bench.images.report import draw
    from lloydia.data.outputs import Renames, writing

    present = {row["peer"] for row in rows if row["status"] != "not installed"}
    pixels, part = photograph(names[0]), (slice(10, 190), slice(70, 320))
    contenders = [contender for contender in CONTENDERS if contender.name in present]
    with Renames(force=force) as renames:
        with writing(folder / PICTURES[0], renames) as to:
            contact.beside_peers(pixels, 16, contenders, part).save(to, optimize=True)
        with writing(folder / PICTURES[1], renames) as to:
            contact.beside_undithered(pixels, (8, 16, 64), part).save(to, optimize=True)
        with writing(folder / PICTURES[2], renames) as to:
            draw(rows, to)
