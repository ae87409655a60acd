"""`lloydia segment`: a picture in k colours, found in a colour space."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from lloydia.cli.images.display import eight_bits, has_screen, show
from lloydia.cli.images.pictures import AllowHuge, SpaceName, decoders_silent
from lloydia.cli.images.segment_files import Outputs
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
from lloydia.cli.progress import progress
from lloydia.cli.report import print_clusters, sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lloydia.images.formats.files import Picture
    from lloydia.images.segments import Segments

SWATCHES = 12  # colours that are printed


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
            raise ValueError("--rung also decides the device: leave out --device.")
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
    outputs: Outputs = Outputs(),  # noqa: B008 - frozen
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
    from lloydia.images.formats.files import read

    if mode.isdigit():
        raise ValueError(f"{mode} is in the place of MODE: write -k {mode}, or Oklab {mode}.")
    space(mode)  # an unknown one is refused before anything is read
    method.check()
    with progress(f"reading {image}", json=json), decoders_silent():
        picture = read(image, allow_huge=allow_huge)
    if picture.note:
        warnings.warn(picture.note, stacklevel=2)
    outputs = outputs.settle(image, picture, force)
    assert outputs.out is not None
    beside = outputs.out.with_name(f"{image.stem}SIDEBYSIDE.png")
    if display and not has_screen():
        check_output(beside, (".png",), others=[image, outputs.out], force=force)
    parts = [picture.pixels] if picture.alpha is None else [picture.pixels, picture.alpha]
    with progress(f"{k:,} segments", json=json):
        found = method.of(np.dstack(parts), k, mode, iterations)
    outputs.write(found, picture, force)
    facts = _facts(image, mode, found, picture, outputs)
    facts["display"] = show(picture, found, beside, force) if display else None
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
        "palette": [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in eight_bits(found.palette)],
        "device": found.device,
        "n_iter": found.n_iter,
        "converged": found.converged,
        "inertia": found.inertia,
        "seconds": sum(seconds.values()),
        **seconds,
        **{name: str(path) if path else None for name, path in vars(outputs).items()},
    }
