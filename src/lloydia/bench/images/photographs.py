"""The colour photographs that come with scikit-learn and scikit-image, without a download."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lloydia.spelling import meant

__all__ = ["NAMES", "photograph", "present"]

_FOLDERS = {"sklearn": "datasets/images", "skimage": "data"}
_FILES = {
    "china": ("sklearn", "china.jpg"),
    "flower": ("sklearn", "flower.jpg"),
    "astronaut": ("skimage", "astronaut.png"),
    "chelsea": ("skimage", "chelsea.png"),
    "coffee": ("skimage", "coffee.png"),
    "rocket": ("skimage", "rocket.jpg"),
    "hubble": ("skimage", "hubble_deep_field.jpg"),
    "tissue": ("skimage", "ihc.png"),
    "motorcycle": ("skimage", "motorcycle_left.png"),
    "retina": ("skimage", "retina.jpg"),
}
NAMES = tuple(_FILES)


def present(names: Sequence[str] | None) -> Iterator[str]:
    """Yield the photographs of these names, or all that are there.

    Raises
    ------
    ValueError
        There is none of a name.
    ImportError
        It comes with a library that is not installed, or that left it out.
    """
    for name in names or NAMES:
        if name not in _FILES:
            raise ValueError(
                f"There is no photograph {name!r}: there are {', '.join(NAMES)}{meant(name, NAMES)}"
            )
        if _path(name).exists():
            yield name
        elif names:
            raise ImportError(f"{name} comes with scikit-image; pip install scikit-image.")


def photograph(name: str) -> NDArray[np.uint8]:
    """Return a photograph, shape (height, width, 3)."""
    from lloydia.images.formats.files import read

    return read(_path(name)).pixels


def _path(name: str) -> Path:
    package, file = _FILES[name]
    spec = find_spec(package)
    root = Path(spec.origin).parent if spec and spec.origin else Path(package)
    return root / _FOLDERS[package] / file
