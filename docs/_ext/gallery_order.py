"""The order of the gallery: pictures first, and what needs special hardware last."""

from __future__ import annotations

ORDER = (
    "plot_photograph_colors.py",
    "plot_digits.py",
    "plot_silhouette.py",
    "plot_same_result.py",
    "plot_stop_rule.py",
    "plot_checkpoint.py",
    "plot_stream.py",
    "plot_batched.py",
    "gpu.py",
)


class GalleryOrder:
    """The key by which sphinx-gallery sorts the examples of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> int:
        """Return the place of an example; one that is not listed is an error."""
        return ORDER.index(name)
