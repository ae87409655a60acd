"""`lloydia quantize`: a picture, an animation or a folder of them in k colours."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from lloydia.cli.images.pictures import AllowHuge, SpaceName, decoders_silent
from lloydia.cli.options import (
    FILE,
    METHOD,
    OUTPUT,
    SEED,
    Force,
    Json,
    OneDevice,
    Threads,
    require_device,
    whole,
)
from lloydia.cli.progress import progress
from lloydia.cli.report import print_json, print_pairs
from lloydia.progress.stages import steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lloydia.data.outputs import Renames
    from lloydia.images.formats.indexed import Animation
    from lloydia.images.palettes import Palette

# What is taken from a folder.
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif")


@Parameter(name="*", group=METHOD)
@dataclass(frozen=True)
class Quantizing:
    """How the colours are found, and mixed."""

    dither: Annotated[
        Literal["none", "floyd-steinberg", "blue-noise"],
        Parameter(
            help="How to mix the colours of the palette; blue-noise keeps still parts of "
            "animations still."
        ),
    ] = "none"
    space: Annotated[
        SpaceName,
        Parameter(
            show_choices=False,
            help="Colour space of the palette's search: RGB gives the highest PSNR, Oklab colours "
            "that look more alike; also sRGB, linear, HSV, HSL, HSI, CMY, Lab.",
        ),
    ] = "RGB"
    per_frame: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Make a palette for each frame of a GIF."),
    ] = False
    seed: Annotated[int, SEED, Parameter(help="The same seed gives the same result.")] = 0
    device: OneDevice = "auto"
    threads: Threads = None
    allow_huge: AllowHuge = False

    def options(self) -> dict[str, Any]:
        """Return the options of :func:`lloydia.images.quantize`."""
        return {
            "space": self.space,
            "dither": self.dither,
            "random_state": self.seed,
            "device": self.device,
            "n_threads": self.threads,
        }

    def parts(self, pixels: NDArray) -> list[NDArray]:
        """Return what gets a palette each: a picture, a film, or its frames."""
        return list(pixels) if self.per_frame and pixels.ndim == 4 else [pixels]


def quantize(
    image: Annotated[
        Path, FILE, Parameter(help="An image, an animated GIF, or a folder of images.")
    ],
    /,
    *,
    k: Annotated[
        int,
        Parameter(
            name=["-k", "--k"],
            group=METHOD,
            converter=whole,
            validator=Number(gte=1, lte=256),
            help="Number of colours, including a transparent one.",
        ),
    ],
    method: Quantizing = Quantizing(),
    out: Annotated[
        Path | None,
        FILE,
        Parameter(
            group=OUTPUT,
            help="An indexed .png or a .gif, by default NAME-K beside the image; for a folder of "
            "images, a folder.",
        ),
    ] = None,
    palette: Annotated[
        Path | None,
        FILE,
        Parameter(group=OUTPUT, help="File for the colours: .png (swatches), .json, .gpl, .ase."),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Reduce images to k colours: indexed PNG files, or GIFs.

    Example: lloydia quantize photo.jpg -k 16 --dither blue-noise --palette colours.gpl
    """
    from lloydia.data.columns import DataError
    from lloydia.data.formats.opening import STANDARD_INPUT
    from lloydia.images.color import space

    if palette is not None and method.per_frame:
        raise DataError(
            "--palette writes one palette, and --per-frame makes several: leave out one of them."
        )
    space(method.space)  # an unknown one is refused before anything is read
    require_device(method.device)
    if image.is_dir():
        _folder(image, k, method, out, palette, force, json)
        return
    if out is None and str(image) in STANDARD_INPUT:
        raise DataError("the image comes from standard input: add --out FILE.")
    base = image.with_name(f"{image.stem}-{k}")
    with progress(f"{k} colours", json=json):
        facts = _one(image, k, method, base, out, palette, force)
    if json:
        print_json(facts)
    else:
        print_pairs(facts)


def _folder(
    folder: Path,
    k: int,
    method: Quantizing,
    out: Path | None,
    palette: Path | None,
    force: bool,
    json: bool,
) -> None:
    """Quantise the images of a folder; one that cannot be read does not stop the others."""
    from lloydia.data.columns import DataError
    from lloydia.data.outputs import target_of

    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURES)
    inner = sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")
    if not paths:
        inside = "; folders in it are not looked into" if inner else ""
        raise DataError(f"{folder} has no images, {', '.join(PICTURES)}{inside}.")
    if out is None:
        raise DataError(f"{folder} is a folder: add --out FOLDER.")
    if palette is not None:
        raise DataError("--palette writes the colours of one image: leave it out for a folder.")
    if target_of(out) == target_of(folder):
        raise DataError(f"cannot write into {out}: it holds the images; name another folder.")
    if out.exists() and not out.is_dir():
        raise DataError(f"cannot write into {out}: it is not a folder; name one.")
    if others := [path.name for path in inner if target_of(path) != target_of(out)]:
        one = f"the folder {others[0]} is left out; name it by itself"
        several = f"{len(others)} folders in it are left out; name each by itself"
        warnings.warn(f"{folder}: {one if len(others) == 1 else several}.", stacklevel=2)
    out.mkdir(parents=True, exist_ok=True)
    stems = Counter(path.stem for path in paths)
    done, failed = [], []
    with progress("quantising", json=json):
        for path in steps("images", paths):
            base = out / (path.stem if stems[path.stem] == 1 else path.name)
            try:
                done.append(_one(path, k, method, base, None, None, force))
            except DataError as error:
                failed.append(str(error))
    if json:
        print_json({"images": done, "failed": failed})
    else:
        for facts in done:
            print(_line(facts))
    if failed:
        why = "; ".join(error.rstrip(".") for error in failed)
        raise DataError(f"{len(failed)} of {len(paths)} images were left out: {why}")


def _one(
    path: Path,
    k: int,
    method: Quantizing,
    base: Path,
    out: Path | None,
    palette: Path | None,
    force: bool,
) -> dict[str, Any]:
    """Quantise one image and return what there is to say; for `base` see `_target`."""
    from lloydia.data.outputs import Renames, check_output
    from lloydia.images.formats.files import Picture, read
    from lloydia.images.formats.indexed import INDEXED, read_animation
    from lloydia.images.palettes import KINDS

    huge, film = method.allow_huge, None
    with decoders_silent():
        if path.is_file():
            film = read_animation(path, allow_huge=huge)
        picture = Picture(film.pixels, info=film.info) if film else read(path, allow_huge=huge)
    target = _target(path, base, out, film)
    check_output(target, INDEXED, others=[path], force=force)
    if palette is not None:
        check_output(palette, KINDS, others=[path, target], force=force)
    pixels, notes = _prepared(picture, target)
    if method.per_frame and film is None:
        notes.append("one picture has one frame, so --per-frame changes nothing")
    from lloydia.images.quantization import quantize as reduce  # after what may be refused: slow

    start = time.perf_counter()
    results = [reduce(part, k, **method.options()) for part in method.parts(pixels)]
    seconds = time.perf_counter() - start
    with Renames(force=force) as renames:
        _write(target, results, film, picture.info, renames)
        if palette is not None:
            results[0].palette.write(palette, picture.info, renames)
    notes += sorted({result.note for result in results if result.note})
    likeness = _likeness(pixels, results)
    if likeness["psnr"] is None:
        notes.append("every pixel is as it was")
    return {
        "image": str(path),
        "width": pixels.shape[-2],
        "height": pixels.shape[-3],
        "frames": len(pixels) if film else None,
        "n_colors": max(result.n_colors for result in results),
        "palette_size": max(len(result.palette) for result in results),
        "space": results[0].palette.space,
        "dither": method.dither,
        "n_iter": max(result.n_iter for result in results),
        **likeness,
        "seconds": seconds,
        "bytes_before": path.stat().st_size or None,
        "bytes": target.stat().st_size,
        "out": str(target),
        "palette": str(palette) if palette else None,
        "note": "; ".join(notes) or None,
    }


def _target(path: Path, base: Path, out: Path | None, film: Animation | None) -> Path:
    """Return where the image goes: `out`, or `base` with the extension of what it is.

    Raises
    ------
    DataError
        An animation would become a PNG.
    """
    from lloydia.data.columns import DataError

    if out is None:
        return base.with_name(base.name + (".gif" if film else ".png"))
    if film and out.suffix.lower() == ".png":
        raise DataError(
            f"{path} is an animation of {len(film.pixels)} frames: name a .gif instead of {out}."
        )
    return out


def _prepared(picture: Any, target: Path) -> tuple[NDArray, list[str]]:
    """Return the pixels as an indexed file can have them, 8 bits, and notes."""
    import numpy as np

    from lloydia.images.formats.indexed import binary

    pixels, notes = picture.pixels, [picture.note.rstrip(".")] if picture.note else []
    if picture.alpha is not None:
        pixels = np.dstack([pixels, picture.alpha])
    if pixels.dtype == np.uint16:
        pixels = np.rint(pixels / 257).astype(np.uint8)
        notes.append("16 bits a channel were rounded to 8, which a palette has")
    if target.suffix.lower() == ".gif" and pixels.shape[-1] in (2, 4):
        kept = binary(pixels)
        if (kept != pixels).any():
            notes.append("a GIF has no half-transparent pixels: each became opaque or transparent")
        pixels = kept
    return pixels, notes


def _write(
    target: Path, results: list[Any], film: Animation | None, info: Any, renames: Renames
) -> None:
    import numpy as np

    from lloydia.images.formats.indexed import write_gif, write_png

    palettes: list[Palette] = [result.palette for result in results]
    if target.suffix.lower() == ".png":
        write_png(target, results[0].indices, palettes[0], info, renames)
        return
    indices = results[0].indices if len(results) == 1 else np.stack([r.indices for r in results])
    frames = indices.reshape(-1, *indices.shape[-2:])
    if film:
        write_gif(target, frames, palettes, film.durations, film.loop, info, renames)
    else:
        write_gif(target, frames, palettes, info=info, renames=renames)


def _likeness(pixels: NDArray, results: list[Any]) -> dict[str, float | None]:
    """Return PSNR and SSIM; None where the pictures are equal, or too small for SSIM's window."""
    import numpy as np

    from lloydia.images.quality import TAPS, decibels, shown, squared_error, ssim

    frames = pixels.reshape(-1, *pixels.shape[-3:])
    images = (frame for r in results for frame in r.image.reshape(-1, *frames.shape[1:]))
    # A constant alpha is kept as it was: a channel without errors would only flatter the means.
    alpha = pixels[..., -1] if pixels.shape[-1] in (2, 4) else None
    kept = slice(0, -1 if alpha is not None and (alpha == alpha.flat[0]).all() else None)
    error, n_samples, similarities = 0.0, 0, []
    for frame, image in zip(frames, images):  # not all at once: they take eight times the memory
        original, other = shown(frame)[..., kept], shown(image)[..., kept]
        error += squared_error(original, other)
        n_samples += original.size
        if min(frame.shape[:2]) >= TAPS:
            similarities.append(ssim(original, other))
    return {
        "psnr": decibels(error / n_samples) if error else None,
        "ssim": float(np.mean(similarities)) if similarities else None,
    }


def _line(facts: dict[str, Any]) -> str:
    psnr = "exact" if facts["psnr"] is None else f"{facts['psnr']:.2f} dB"
    sizes = f"{facts['bytes_before']:,} to {facts['bytes']:,} bytes"
    note = f" ({facts['note']})" if facts["note"] else ""
    return f"{facts['out']}: {facts['palette_size']} colours, {psnr}, {sizes}{note}"
