"""Reading a fitted estimator from a file, with checks of every part."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from lloydia.data.columns import Columns, DataError
from lloydia.data.files import as_floats, read_table
from lloydia.data.formats.damage import DAMAGE
from lloydia.data.formats.numpy_files import Archive, load_numpy
from lloydia.data.formats.opening import open_input
from lloydia.data.models.contents import (
    ESTIMATORS,
    FORMAT,
    OUTPUTS,
    Estimator,
    checked_array,
    checked_fact,
)
from lloydia.data.models.fields import check, is_real, is_text, sound_centers, sound_state
from lloydia.loop.stored_parameters import GENERATOR, stored_array
from lloydia.spelling import either
from lloydia.stopping import parse
from lloydia.version import __version__

__all__ = ["load", "read_centers"]

# Exceptions that a missing, mistyped or out-of-range part raises.
DAMAGED = (*DAMAGE, LookupError, AttributeError, RecursionError)

# The name of the first format, and its arrays.
FIRST = "lloydia k-means 1"
FIRST_PARTS = ("format", "version", "centers", "dtype", "n_iter", "inertia", "feature_names")

NUMBERED = re.compile("lloydia model ([1-9][0-9]{0,8})")


def load(path: str | os.PathLike[str]) -> Any:
    """Load a fitted estimator from a file that :func:`save` or ``lloydia fit --model`` wrote.

    Loading runs no code from the file and checks every part of it, so files from untrusted sources
    are safe.

    Parameters
    ----------
    path : str or Path
        The .npz file.

    Returns
    -------
    KMeans, MiniBatchKMeans or lloydia.dask.KMeans
        A fitted estimator of the class that was saved, with its parameters and fitted attributes.
        :func:`save` lists the attributes that a file does not contain.

    Raises
    ------
    TypeError
        If `path` is not a path.
    DataError
        If there is no such file, or it cannot be read, is not a model, is damaged, or was written
        by a newer version of Lloydia.  DataError is a :class:`ValueError`.

    See Also
    --------
    save : Write such a file.

    Notes
    -----
    Each release reads the models of older releases.  The parameter `device` is restored as well: if
    this machine has no such GPU, call ``model.set_params(device="auto")``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import lloydia
    >>> X = [[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]]
    >>> path = Path(tempfile.mkdtemp(), "model.npz")
    >>> lloydia.save(lloydia.KMeans(n_clusters=2, random_state=0).fit(X), path)
    >>> model = lloydia.load(path)
    >>> model.predict([[0, 0], [12, 3]])
    array([1, 0], dtype=int32)
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"load needs a path, and got a {type(path).__name__}: give the name of an .npz file."
        )
    path = Path(path)
    with open_input(path) as (stream, _):
        if not stream.read(2).startswith(b"PK"):
            raise _stranger(path)
        stream.seek(0)
        archive = load_numpy(stream, str(path), ours=True)
        assert isinstance(archive, Archive)  # that is what begins with PK
        first = set(FIRST_PARTS) <= set(archive.files)
        if not first and "header" not in archive.files:
            raise _stranger(path)
        try:
            return _first(archive, path) if first else _estimator(archive, path)
        except DataError:
            raise
        except DAMAGED:
            raise DataError(f"{path} is a damaged model; write it again.") from None


def read_centers(
    path: str, dtype: str, k: int
) -> tuple[NDArray[np.floating], Sequence[str] | None]:
    """Read the centres of a model, or the rows of a table, and the names of their features.

    Parameters
    ----------
    path : str
        A model that :func:`lloydia.save` wrote, or a table for
        :func:`lloydia.data.files.read_table`.
    dtype : {"float32", "float64"}
        The type of the returned centres.
    k : int
        The expected number of centres; another number is returned without an error.

    Raises
    ------
    DataError
        As :func:`load` and :func:`lloydia.data.files.read_table`.
    """
    if Path(path).suffix.lower() == ".npz":
        with open_input(path) as (stream, _):
            found = load_numpy(stream, path)
            names = found.files if isinstance(found, Archive) else []
        if "header" in names or {"format", "centers"} <= set(names):
            model = load(path)
            features = getattr(model, "feature_names_in_", None)
            centers = model.cluster_centers_
            columns = Columns(
                tuple(range(centers.shape[1])), None if features is None else tuple(features)
            )
            return as_floats(centers, dtype, columns, path), columns.names
    table = read_table(path, dtype=dtype, n_rows=k)
    return table.X, table.names


def _stranger(path: Path) -> DataError:
    how = either(
        "name a file that lloydia.save wrote.",
        "give MODEL first, a file that `lloydia fit --model` wrote.",
    )
    return DataError(f"{path} is not a model: {how}")


def _estimator(archive: Archive, path: Path) -> Any:
    """Return the estimator of a file.

    Raises
    ------
    DataError
        If the file has another format, or another version wrote a part that this version does not
        read.
    ValueError, LookupError, TypeError or AttributeError
        If a part is missing, of another type, or out of range.
    """
    arrays = {name: archive[name] for name in archive.files}
    text = arrays.pop("header")
    check(is_text(text))
    header = json.loads(str(text))
    found, version = header["format"], header["version"]
    check(type(found) is str and type(version) is str)
    if found != FORMAT:
        number = NUMBERED.fullmatch(found)
        if number is None:
            raise DataError(f"{path} has the format {found[:40]!r}, not {FORMAT!r}.")
        raise _newer(path, version, f"the format {found!r}")
    try:
        return _fitted(header, arrays, path)
    except DataError:
        raise
    except DAMAGED:
        if version == __version__:
            raise
        raise DataError(
            f"{path} is a damaged model, or Lloydia {version[:40]} wrote what this version "
            f"({__version__}) does not read: install that version, or write the model again."
        ) from None


def _fitted(header: dict[str, Any], arrays: dict[str, NDArray], path: Path) -> Any:
    """Return the estimator of a header and the other arrays; each array read is removed from them.

    Raises
    ------
    DataError, ValueError, LookupError, TypeError or AttributeError
        As for `_estimator`.
    """
    estimator = ESTIMATORS[header["estimator"]]
    model = _with_parameters(estimator, header, arrays, path)
    centers = sound_centers(arrays.pop("cluster_centers_"))
    result = {"cluster_centers_": centers, "n_features_in_": centers.shape[1]}
    if header["feature_names"] is not None:
        names = header["feature_names"]
        check(type(names) is list and all(type(name) is str for name in names))
        check(len(names) == centers.shape[1])
        result["feature_names_in_"] = np.array(names, dtype=object)
    facts = header["fitted"]
    check(facts.keys() <= set(estimator.facts))
    result |= {name: checked_fact(name, value) for name, value in facts.items()}
    for name in set(estimator.arrays) & arrays.keys():
        result[name] = checked_array(name, arrays.pop(name), len(centers))
    own = _generators(header["generators"], arrays, model)
    # No array may be left over.
    check(not arrays)
    vars(model).update(result | own)
    return model


def _with_parameters(
    estimator: Estimator, header: dict[str, Any], arrays: dict[str, NDArray], path: Path
) -> Any:
    """Return an estimator with the parameters of a file, not yet fitted."""
    kind: Any = estimator.type
    parameters = dict(header["parameters"])
    known = set(kind._get_param_names()) - {"client"}
    if surplus := sorted(parameters.keys() - known):
        # Another version wrote the file, or it is damaged.
        check(header["version"] != __version__)
        raise _newer(path, header["version"], f"the parameter {surplus[0][:40]!r}")
    # A file of an older version has no values of newer parameters.
    check(parameters.keys() == known or header["version"] != __version__)
    if "init" in arrays:
        init = sound_centers(arrays.pop("init"))
        check(parameters["init"] == stored_array(init))
        parameters["init"] = init
    if parameters.get("stop") is not None:
        parameters["stop"] = parse(parameters["stop"])
    if parameters["random_state"] == GENERATOR:
        check("random_state" in header["generators"])
        parameters["random_state"] = RandomState()
    model = kind(**parameters)
    estimator.check(model)
    check(type(model.init) is str or isinstance(model.init, np.ndarray))
    check(type(model.device) is str)
    output = header["transform_output"]
    check(output in OUTPUTS)
    return model.set_output(transform=output)


def _generators(given: dict[str, Any], arrays: dict[str, NDArray], model: Any) -> dict[str, Any]:
    """Restore the states of generators from a file; return those that are not parameters."""
    found: dict[str, Any] = {}
    for name, state in given.items():
        check(name in ("random_state", "_random_state"))
        generator = model.random_state
        if name == "_random_state" and state != GENERATOR:
            generator = RandomState()
        check(isinstance(generator, RandomState))
        if name == "_random_state":
            found[name] = generator
        if state != GENERATOR:
            generator.set_state(sound_state(state, arrays.pop(f"words_of_{name}")))
    return found


def _newer(path: Path, version: str, what: str) -> DataError:
    return DataError(
        f"{path} has {what}, which this version of Lloydia ({__version__}) does not read: "
        f"Lloydia {version[:40]} wrote it, so install that version or a newer one."
    )


def _first(archive: Archive, path: Path) -> Any:
    """Return the estimator of a file of the first format, which has no parameters.

    Raises
    ------
    DataError
        If the file has another format.
    ValueError
        If a part is of another type, or out of range.
    """
    from lloydia.estimators.kmeans import KMeans

    parts = {name: archive[name] for name in FIRST_PARTS}
    if not is_text(parts["format"]) or str(parts["format"]) != FIRST:
        raise DataError(f"{path} has the format {str(parts['format'])[:40]!r}, not {FORMAT!r}.")
    centers, names = sound_centers(parts["centers"]), parts["feature_names"]
    n_iter, inertia = parts["n_iter"], parts["inertia"]
    check(is_text(parts["dtype"]) and str(parts["dtype"]) == str(centers.dtype))
    check(n_iter.dtype == np.int64 and n_iter.ndim == 0 and int(n_iter) >= 0)
    check(inertia.dtype == np.float64 and inertia.ndim == 0)
    check(is_real(float(inertia)) and float(inertia) >= 0)
    check(is_text(parts["version"]) and is_text(names, ndim=1))
    check(len(names) in (0, centers.shape[1]))
    model = KMeans(n_clusters=len(centers))
    model.cluster_centers_, model.n_features_in_ = centers, centers.shape[1]
    model.n_iter_, model.inertia_ = int(n_iter), float(inertia)
    if len(names):
        model.feature_names_in_ = np.array(names.tolist(), dtype=object)
    return model
