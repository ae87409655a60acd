"""`lloydia segment`: a picture in k colours, found in a colour space."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from lloydia.cli.options import (
    FILE,
    METHOD,
    OUTPUT,
    POSITIVE,
    SEED,
    Force,
    Json,
    OneDevice,
    Threads,
    real,
    require_device,
)
from lloydia.cli.pictures import AllowHuge, SpaceName, decoders_silent
from lloydia.cli.progress import progress
from lloydia.cli.report import print_clusters, sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

    from lloydia.data.outputs import Renames
    from lloydia.images.files import Picture
    from lloydia.images.segments import Segments

SHOWN = 1200  # pixels: the longer side of each of two pictures side by side
SWATCHES = 12  # colours that are printed
SPECKS = 4000  # pieces of fewer than one in so many pixels are not outlined


@Parameter(name="*", group=METHOD)
@dataclass(frozen=True)
class Segmenting:
    """How the segments are found."""

    init: Annotated[
        Literal["k-means++", "random", "farthest", "k-means||"],
        Parameter(help="How the starting colours are drawn."),
    ] = "k-means++"
    seed: Annotated[int, SEED, Parameter(help="The same seed gives the same result.")] = 0
    xy: Annotated[
        float,
        Parameter(
            converter=real,
            validator=Number(gte=0),
            help="Weight of a pixel's position relative to its colour: with 1, the ends of the "
            "longer side are as far apart as black and white.",
        ),
    ] = 0.0
    device: OneDevice = "auto"
    threads: Threads = None

    rung: Annotated[
        str | None,
        Parameter(
            help="Use a program of the ladder instead of Lloydia's engine, by number or name (see "
            "lloydia ladder list). It reads every pixel and does all ITERATIONS."
        ),
    ] = None

    def check(self) -> None:
        """Refuse a GPU or a rung that is not known, or that cannot run here."""
        require_device(self.device)
        if self.rung is None:
            return
        from lloydia.ladder import called, where

        if self.device != "auto":
            raise ValueError("--rung says what to run on: leave out --device.")
        if where(called(self.rung)) == "cuda":
            from lloydia.ladder.experiments.lab import gpu

            gpu()

    def of(self, pixels: NDArray, k: int, space: str, max_iter: int) -> Segments:
        """Segment a picture."""
        if self.rung is not None:
            from lloydia.ladder import called, own_data

            return own_data.segment(
                called(self.rung),
                pixels,
                k,
                space,
                init=self.init,
                seed=self.seed,
                max_iter=max_iter,
                xy=self.xy,
                threads=self.threads,
            )
        from lloydia.images import segments

        return segments.segment(
            pixels,
            k,
            space,
            init=self.init,
            random_state=self.seed,
            max_iter=max_iter,
            xy=self.xy,
            device=self.device,
            n_threads=self.threads,
        )


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Outputs:
    """Files to write; each appears whole or not at all."""

    out: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="File or folder for the picture in k colours: a .png keeps them exactly, a .jpg "
            "does not. By default it is NAMECLUSTERIZED beside the image."
        ),
    ] = None
    labels: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="File for the segment of each pixel, from 0: .npy, or .png, whose grey values are "
            "these numbers, so that it looks nearly black."
        ),
    ] = None
    boundaries: Annotated[
        Path | None,
        FILE,
        Parameter(help="File for the image with segment borders drawn; small regions are ignored."),
    ] = None

    def settle(self, image: Path, picture: Picture, force: bool) -> Outputs:
        """Name what is not named, and refuse what could not be written, before any work is done."""
        from lloydia.data.columns import DataError
        from lloydia.data.formats.opening import STANDARD_INPUT
        from lloydia.data.outputs import check_output
        from lloydia.images.files import WRITABLE, check_form

        form = picture.pixels.dtype, picture.alpha is not None
        out = self.out or image.parent
        if out.is_dir():
            if str(image) in STANDARD_INPUT:
                raise ValueError("an image on standard input has no name: give --out FILE.")
            out = out / f"{image.stem}CLUSTERIZED{image.suffix}"
            try:
                check_form(out, *form)
            except DataError:
                out = out.with_suffix(".png")
        known = {"out": WRITABLE, "labels": (".npy", ".png"), "boundaries": WRITABLE}
        settled, used = replace(self, out=out), [image]
        for field in fields(settled):
            if (path := getattr(settled, field.name)) is not None:
                check_output(path, known[field.name], others=used, force=force)
                used.append(path)
                if field.name != "labels":
                    check_form(path, *form)
        return settled

    def write(self, found: Segments, picture: Picture, force: bool) -> None:
        """Write all files."""
        from lloydia.data.outputs import Renames
        from lloydia.images.files import write

        assert self.out is not None  # since settle()
        image = found.image[..., : picture.pixels.shape[2]]
        with Renames(force=force) as renames:
            if self.labels:
                _write_labels(self.labels, found, renames)
            write(self.out, image, picture.alpha, picture.info, renames)
            if self.boundaries:
                drawn = _outlined(picture.pixels, found.labels)
                write(self.boundaries, drawn, picture.alpha, picture.info, renames)


def displayed(_: type, tokens: Sequence[Any]) -> bool:
    """Convert the word after ITERATIONS: there is but one."""
    if tokens[0].value != "display":
        raise ValueError(f"{tokens[0].value!r} is not the word display")
    return True


def segment(
    image: Annotated[Path, FILE, Parameter(help="An image; - is standard input.")],
    /,
    mode: Annotated[
        SpaceName,
        Parameter(
            show_choices=False,
            name=["--mode", "--space"],
            group=METHOD,
            help="Colour space: RGB, linear, HSV, HSL, HSI, CMY, Lab, Oklab; or sRGB, for images "
            "whose values are linear light.",
        ),
    ] = "Oklab",
    k: Annotated[
        int, POSITIVE, Parameter(name=["-k", "--k"], group=METHOD, help="Number of segments.")
    ] = 8,
    iterations: Annotated[
        int,
        POSITIVE,
        Parameter(
            group=METHOD, help="Largest number of iterations; a run ends once nothing changes."
        ),
    ] = 300,
    display: Annotated[
        bool,
        Parameter(
            converter=displayed,
            group=OUTPUT,
            negative="",
            show_default=False,
            help="Show the original beside the result; without a screen, write them as "
            "NAMESIDEBYSIDE.png.",
        ),
    ] = False,
    *,
    method: Segmenting = Segmenting(),
    outputs: Outputs = Outputs(),
    allow_huge: AllowHuge = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Paint an image in the mean colours of its k segments.

    Example: lloydia segment photo.jpg HSV 7 200 display

    Example: lloydia segment photo.jpg -k 12 --xy 0.5 --boundaries outlined.png

    Example: lloydia segment photo.jpg RGB 7 200 display --rung 60
    """
    import numpy as np

    from lloydia.data.outputs import check_output
    from lloydia.images.color import space
    from lloydia.images.files import read

    if mode.isdigit():
        raise ValueError(f"{mode} stands in the place of MODE: write -k {mode}, or Oklab {mode}.")
    space(mode)  # an unknown one is refused before anything is read
    method.check()
    with progress(f"reading {image}", json=json), decoders_silent():
        picture = read(image, allow_huge=allow_huge)
    if picture.note:
        warnings.warn(picture.note, stacklevel=2)
    outputs = outputs.settle(image, picture, force)
    assert outputs.out is not None
    beside = outputs.out.with_name(f"{image.stem}SIDEBYSIDE.png")
    if display and not _has_screen():
        check_output(beside, (".png",), others=[image, outputs.out], force=force)
    parts = [picture.pixels] if picture.alpha is None else [picture.pixels, picture.alpha]
    with progress(f"{k:,} segments", json=json):
        found = method.of(np.dstack(parts), k, mode, iterations)
    outputs.write(found, picture, force)
    facts = _facts(image, mode, found, picture, outputs)
    facts["display"] = _show(picture, found, beside, force) if display else None
    if not json:
        colors = facts["palette"]
        more = ["..."] if len(colors) > SWATCHES else []
        facts["palette"] = " ".join([*colors[:SWATCHES], *more])
    print_clusters(facts, sizes(found.labels.ravel(), len(found.palette)), json)


def _facts(
    image: Path, mode: str, found: Segments, picture: Picture, outputs: Outputs
) -> dict[str, Any]:
    from lloydia.images.color import space

    seconds = {name: value for name, value in vars(found).items() if name.startswith("seconds_")}
    return {
        "image": str(image),
        "height": picture.pixels.shape[0],
        "width": picture.pixels.shape[1],
        "n_colors": found.n_colors,
        "space": space(mode).name,
        "n_clusters": len(found.palette),
        "palette": [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in _bytes(found.palette)],
        "device": found.device,
        "n_iter": found.n_iter,
        "converged": found.converged,
        "inertia": found.inertia,
        "seconds": sum(seconds.values()),
        **seconds,
        **{name: str(path) if path else None for name, path in vars(outputs).items()},
    }


def _bytes(values: NDArray) -> NDArray:
    """Return grey or RGB levels as RGB in 8 bits, shape (..., 3)."""
    import numpy as np

    from lloydia.images.color import levels

    eight = np.rint(values * (255 / levels(values.dtype))).astype(np.uint8)
    if eight.ndim > 1 and eight.shape[-1] == 3:
        return eight
    return np.repeat(eight.reshape(*values.shape[:2], 1), 3, axis=-1)


def _write_labels(path: Path, found: Segments, renames: Renames) -> None:
    import numpy as np

    from lloydia.data.outputs import write_table, writing
    from lloydia.images.files import write

    k = len(found.palette)
    if path.suffix.lower() == ".png":
        if k > 1 << 16:
            raise ValueError(f"{k:,} segments are more than a .png has levels: name {path} .npy.")
        labels = found.labels.astype(np.uint8 if k <= 256 else np.uint16)
        write(path, labels, renames=renames)
        return
    with writing(path, renames) as to:
        write_table(to, found.labels, ["label"], ".npy")


def _outlined(pixels: NDArray, labels: NDArray) -> NDArray:
    """Return a picture with yellow lines where its segments end, but for specks."""
    import numpy as np

    from lloydia.images.borders import boundaries, without_specks
    from lloydia.images.color import levels

    full = levels(pixels.dtype)
    drawn = np.repeat(pixels, 3, axis=-1) if pixels.shape[2] == 1 else pixels.copy()
    drawn[boundaries(without_specks(labels, labels.size // SPECKS))] = (full, full, 0)
    return drawn


def _has_screen() -> bool:
    """Return whether there is a screen to show a picture on."""
    on_x = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return sys.platform in ("darwin", "win32") or on_x


def _show(picture: Picture, found: Segments, beside: Path, force: bool) -> str:
    """Show the picture and its segments, or write them to `beside`; say which."""
    from PIL import ImageShow

    from lloydia.data.outputs import Renames, writing
    from lloydia.images.embedding import save

    sheet = _side_by_side(picture, found)
    if _has_screen() and ImageShow.show(sheet):
        return "shown"
    with Renames(force=force) as renames, writing(beside, renames) as to:
        save(sheet, to, "PNG", picture.info, beside, optimize=True)
    return str(beside)


def _side_by_side(picture: Picture, found: Segments) -> Image:
    from lloydia.cli.photo import side_by_side

    step = -(-max(found.labels.shape) // SHOWN)
    thin = (slice(None, None, step), slice(None, None, step))
    return side_by_side(
        _bytes(picture.pixels[thin]),
        found.labels[thin].ravel(),
        _bytes(found.palette),
        n_colors=found.n_colors,
    )
