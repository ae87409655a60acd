"""A fitted model in an .npz file, without pickle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lloydia.data.columns import Columns, DataError
from lloydia.data.fields import check, is_real, is_text, sound_centers
from lloydia.data.files import as_floats, read_table
from lloydia.data.formats.numpy_files import DAMAGE, load_numpy
from lloydia.data.formats.opening import open_input

if TYPE_CHECKING:
    from lloydia.kmeans import KMeans

FORMAT = "lloydia k-means 1"


@dataclass(frozen=True)
class Model:
    """What is kept of a fit.

    Parameters
    ----------
    centers : ndarray of float32 or float64, shape (k, d)
    n_iter : int
    inertia : float
    version : str
        The version of Lloydia that made the fit.
    names : tuple of str or None
        Names of the d features, where the data had a header.
    """

    centers: NDArray[np.floating]
    n_iter: int
    inertia: float
    version: str
    names: tuple[str, ...] | None

    def estimator(self) -> KMeans:
        """Return an estimator that predicts with these centres."""
        from lloydia.kmeans import KMeans

        model = KMeans(n_clusters=len(self.centers))
        model.cluster_centers_ = self.centers
        model.n_features_in_ = self.centers.shape[1]
        model.n_iter_ = self.n_iter
        model.inertia_ = self.inertia
        return model


def save_model(model: Model, to: Path) -> None:
    """Write a model; equal models give equal bytes.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    with to.open("wb") as stream:
        np.savez(
            stream,
            format=np.array(FORMAT),
            version=np.array(model.version),
            centers=model.centers,
            dtype=np.array(str(model.centers.dtype)),
            n_iter=np.array(model.n_iter, dtype=np.int64),
            inertia=np.array(model.inertia, dtype=np.float64),
            feature_names=np.array(model.names or (), dtype=np.str_),
        )


def load_model(path: str | Path) -> Model:
    """Read a model and check all of it.

    Parameters
    ----------
    path : str or Path
        A file that `save_model` wrote.

    Returns
    -------
    Model

    Raises
    ------
    DataError
        There is no such file, it is not a model, or it is damaged.
    """
    stranger = f"{path} is not a model; MODEL comes first, and `lloydia fit --model` writes one."
    with open_input(path) as (stream, _):
        if not stream.read(2).startswith(b"PK"):
            raise DataError(stranger)
        stream.seek(0)
        archive = load_numpy(stream, str(path), ours=True)
        wanted = ("format", "version", "centers", "dtype", "n_iter", "inertia", "feature_names")
        if isinstance(archive, np.ndarray) or any(name not in archive.files for name in wanted):
            raise DataError(stranger)
        try:
            parts = {name: archive[name] for name in wanted}
        except DAMAGE:
            raise DataError(f"{path} is a damaged model; write it again.") from None
    if not is_text(parts["format"]) or str(parts["format"]) != FORMAT:
        raise DataError(f"{path} has the format {str(parts['format'])[:40]!r}, not {FORMAT!r}.")
    return _checked(parts, path)


def read_centers(
    path: str, dtype: str, k: int
) -> tuple[NDArray[np.floating], Sequence[str] | None]:
    """Read the centres of a model, or the rows of a table, and the names of their features.

    Parameters
    ----------
    path : str
        What :func:`save_model` wrote, or :func:`lloydia.data.files.read_table` reads.
    dtype : {"float32", "float64"}
        Of the centres that are returned.
    k : int
        How many there should be; others are returned all the same.

    Raises
    ------
    DataError
        As those two do.
    """
    if Path(path).suffix.lower() == ".npz":
        with open_input(path) as (stream, _):
            found = load_numpy(stream, path)
            known = () if isinstance(found, np.ndarray) else found.files
        if "format" in known and "centers" in known:
            model = load_model(path)
            columns = Columns(tuple(range(model.centers.shape[1])), model.names)
            return as_floats(model.centers, dtype, columns, path), model.names
    table = read_table(path, dtype=dtype, n_rows=k)
    return table.X, table.names


def _checked(parts: dict[str, NDArray], path: str | Path) -> Model:
    centers, names = parts["centers"], parts["feature_names"]
    n_iter, inertia = parts["n_iter"], parts["inertia"]
    try:
        centers = sound_centers(centers)
        check(is_text(parts["dtype"]) and str(parts["dtype"]) == str(centers.dtype))
        check(n_iter.dtype == np.int64 and n_iter.ndim == 0 and int(n_iter) >= 0)
        check(inertia.dtype == np.float64 and inertia.ndim == 0)
        check(is_real(float(inertia)) and float(inertia) >= 0)
        check(is_text(parts["version"]) and is_text(names, ndim=1))
        check(len(names) in (0, centers.shape[1]))
    except ValueError:
        raise DataError(f"{path} is a damaged model; write it again.") from None
    return Model(
        centers,
        int(n_iter),
        float(inertia),
        str(parts["version"]),
        tuple(str(name) for name in names) or None,
    )
