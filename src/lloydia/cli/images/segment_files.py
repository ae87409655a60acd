"""Files that `lloydia segment` writes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lloydia.cli.options import FILE, OUTPUT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lloydia.data.outputs import Renames
    from lloydia.images.formats.files import Picture
    from lloydia.images.segments import Segments

__all__ = ["Outputs"]

SPECKS = 4000  # pieces of fewer than one in so many pixels are not outlined


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
        from lloydia.images.formats.files import WRITABLE, check_form

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
        from lloydia.images.formats.files import write

        assert self.out is not None  # since settle()
        image = found.image[..., : picture.pixels.shape[2]]
        with Renames(force=force) as renames:
            if self.labels:
                _write_labels(self.labels, found, renames)
            write(self.out, image, picture.alpha, picture.info, renames)
            if self.boundaries:
                drawn = _outlined(picture.pixels, found.labels)
                write(self.boundaries, drawn, picture.alpha, picture.info, renames)


def _write_labels(path: Path, found: Segments, renames: Renames) -> None:
    import numpy as np

    from lloydia.data.outputs import write_table, writing
    from lloydia.images.formats.files import write

    k = len(found.palette)
    if path.suffix.lower() == ".png":
        if k > 1 << 16:
            raise ValueError(
                f"cannot write {path}: a .png holds at most {1 << 16:,} labels, and there are "
                f"{k:,} segments; name a .npy file."
            )
        labels = found.labels.astype(np.uint8 if k <= 256 else np.uint16)
        write(path, labels, renames=renames)
        return
    with writing(path, renames) as to:
        write_table(to, found.labels, ["label"], ".npy")


def _outlined(pixels: NDArray, labels: NDArray) -> NDArray:
    """Return a picture with yellow lines where its segments end, but for specks."""
    import numpy as np

    from lloydia.images.borders import boundaries, without_specks
    from lloydia.images.pixels import levels

    full = levels(pixels.dtype)
    drawn = np.repeat(pixels, 3, axis=-1) if pixels.shape[2] == 1 else pixels.copy()
    drawn[boundaries(without_specks(labels, labels.size // SPECKS))] = (full, full, 0)
    return drawn
