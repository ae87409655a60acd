"""Pictures: segmentation, colour quantisation, palettes and colour spaces."""

from __future__ import annotations

from typing import Any

from lloydia.imports import load

__all__ = ["Palette", "Quantized", "Segments", "boundaries", "palette", "quantize", "segment"]

_HOME = {
    "Palette": "lloydia.images.palettes",
    **dict.fromkeys(("Quantized", "palette", "quantize"), "lloydia.images.quantization"),
    **dict.fromkeys(("Segments", "segment"), "lloydia.images.segments"),
    "boundaries": "lloydia.images.borders",
}


def __getattr__(name: str) -> Any:
    """Import a public name where it is first used."""
    if name in _HOME:
        return getattr(load(_HOME[name]), name)
    if name == "color":
        return load("lloydia.images.color")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "color"])
