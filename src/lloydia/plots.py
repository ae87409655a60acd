"""Plots of clusters in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lloydia.data.outputs import Renames, write_encoded, writing

try:
    from matplotlib.figure import Figure
except ImportError:
    raise ImportError("Plots need matplotlib: pip install matplotlib.") from None

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = 20_000  # the largest number of points that are drawn
NUMBERED = 40  # the largest number of centres that are drawn with their numbers

# Paul Tol's qualitative schemes "bright" and "muted": distinct with any common colour blindness.
BRIGHT = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")
MUTED = (
    *("#332288", "#88CCEE", "#44AA99", "#117733", "#999933"),
    *("#DDCC77", "#CC6677", "#882255", "#AA4499", "#888888"),
)


def clusters(
    X: ArrayLike,
    labels: ArrayLike,
    centers: ArrayLike,
    path: str | Path | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw clusters and their centres.

    One feature is drawn as a histogram, and two features as a scatter plot.  More features are
    projected on the first two principal components of X, which are computed from all rows.  A
    scatter plot has at most 20,000 points: a random sample with a fixed seed, noted in the picture.

    Parameters
    ----------
    X : array of shape (n, d)
    labels : array of int, shape (n,)
        Cluster of each row, from 0 to k - 1.
    centers : array of shape (k, d)
        The centres, in the units of X.
    path : str or Path or None
        The file to save the picture in; its extension chooses the format.  If saving fails, no
        file is left.
    ax : matplotlib Axes or None
        The axes to draw in; None makes a new figure.
    title : str or None
        The title of the plot.
    names : sequence of str or None
        Names of the d features; they label the axes if d is 1 or 2.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    OSError
        If the picture cannot be saved.
    """
    X, labels, centers = np.asarray(X), np.asarray(labels), np.asarray(centers)
    if X.ndim != 2 or labels.shape != X.shape[:1] or centers.shape[1:] != X.shape[1:]:
        raise ValueError(
            f"The shapes of X {X.shape}, labels {labels.shape} and centers {centers.shape} do not "
            "fit together: they must be (n, d), (n,) and (k, d)."
        )
    if ax is None:
        ax = Figure(figsize=(7.2, 5.4), dpi=150, layout="constrained").add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    if X.shape[1] == 1:
        _draw_strip(ax, X[:, 0], labels, centers[:, 0], names)
    else:
        _draw_plane(ax, X, labels, centers, names)
    if title:
        # Do not read "$" in a name as a formula.
        ax.set_title(title, loc="left", fontweight="bold", parse_math=False)
    if path is not None:
        with Renames() as renames, writing(Path(path), renames) as to:
            save(ax, to)
    return ax


def save(ax: Axes, to: Path) -> None:
    """Save the figure of axes; the extension of the file chooses the format.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    figure, kind = ax.get_figure(root=True), to.suffix[1:].lower() or None
    write_encoded(to, lambda stream: figure.savefig(stream, format=kind))  # type: ignore[union-attr]


def colors(k: int) -> list[str]:
    """Return k colours; beyond ten, colours repeat and only numbers distinguish the clusters."""
    scheme = BRIGHT if k <= len(BRIGHT) else MUTED
    return [scheme[j % len(scheme)] for j in range(k)]


def project(
    X: NDArray[Any], centers: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Project on the first two principal components.

    Parameters
    ----------
    X : ndarray of shape (n, d), d > 2
    centers : ndarray of shape (k, d)

    Returns
    -------
    points : ndarray of float64, shape (n, 2)
    centers : ndarray of float64, shape (k, 2)
    shares : ndarray of float64, shape (2,)
        The share of the variance that each component explains, from 0 to 1.
    """
    from sklearn.decomposition import PCA

    if len(X) == 1:  # a single point has no principal components
        return np.zeros((1, 2)), np.zeros((len(centers), 2)), np.zeros(2)
    with np.errstate(invalid="ignore"):  # the variance of constant data is 0
        pca = PCA(n_components=2, random_state=0).fit(X.astype(np.float64, copy=False))
    shares = np.nan_to_num(pca.explained_variance_ratio_)
    return pca.transform(X), pca.transform(centers), shares


def _draw_plane(
    ax: Axes,
    X: NDArray[Any],
    labels: NDArray[Any],
    centers: NDArray[Any],
    names: Sequence[str] | None,
) -> None:
    if X.shape[1] == 2:
        points, at = X, centers
        across = list(names or ("feature 1", "feature 2"))
    else:
        points, at, shares = project(X, centers)
        across = [f"component {i + 1} ({share:.0%} of variance)" for i, share in enumerate(shares)]
    n, k = len(points), len(at)
    if n > DRAWN:
        drawn = np.random.RandomState(0).choice(n, DRAWN, replace=False)
        points, labels = points[drawn], labels[drawn]
        note = f"{DRAWN:,} of {n:,} points drawn"
        ax.set_title(note, loc="right", fontsize="small", color="0.4")
    palette = np.array(colors(k))
    size = float(np.clip(20_000 / len(points), 1.5, 28))
    ax.scatter(
        points[:, 0],
        points[:, 1],
        s=size,
        c=palette[labels],
        alpha=0.8,
        linewidths=0,
        rasterized=True,
    )
    _mark_centers(ax, at)
    ax.set_xlabel(across[0], parse_math=False)
    ax.set_ylabel(across[1], parse_math=False)


def _mark_centers(ax: Axes, at: NDArray[Any]) -> None:
    """Mark centres by numbered discs, or by small crosses if there are more than `NUMBERED`."""
    if len(at) > NUMBERED:
        ax.scatter(at[:, 0], at[:, 1], s=14, c="black", marker="x", linewidths=0.9, zorder=3)
        return
    ax.scatter(at[:, 0], at[:, 1], s=130, c="white", edgecolors="black", linewidths=1.2, zorder=3)
    for j, (x, y) in enumerate(at):
        ax.text(x, y, str(j), ha="center", va="center_baseline", fontsize=7.5, zorder=4)


def _draw_strip(
    ax: Axes,
    x: NDArray[Any],
    labels: NDArray[Any],
    centers: NDArray[Any],
    names: Sequence[str] | None,
) -> None:
    """Draw a histogram of all rows whose bars are stacked by cluster."""
    k = len(centers)
    edges = np.histogram_bin_edges(x, bins=min(120, max(20, round(len(x) ** 0.5))))
    below = np.zeros(len(edges) - 1)
    for j, color in enumerate(colors(k)):
        counts = np.histogram(x[labels == j], bins=edges)[0]
        ax.bar(edges[:-1], counts, np.diff(edges), below, align="edge", color=color, linewidth=0)
        below += counts
    top = float(below.max())
    ax.vlines(centers, 0, 1.06 * top, colors="black", linewidth=1)
    if k <= NUMBERED:
        _mark_centers(ax, np.column_stack([centers, np.full(k, 1.06 * top)]))
    ax.set_xlabel(names[0] if names else "feature 1", parse_math=False)
    ax.set_ylabel("rows")
