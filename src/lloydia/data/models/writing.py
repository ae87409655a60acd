"""Writing a fitted estimator to a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lloydia.data.centers import dense, in_order_of
from lloydia.data.models.contents import (
    ESTIMATORS,
    FACTS,
    FORMAT,
    Estimator,
    checked_array,
    checked_fact,
)
from lloydia.data.outputs import Renames, check_output, writing
from lloydia.loop.stored_parameters import GENERATOR, stored
from lloydia.version import __version__

__all__ = ["save", "write_model"]

# Replacements that a file can hold, for parameters that it cannot hold; the others become None.
INSTEAD = {"init": "k-means++"}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator to a file that any machine can load, without pickle.

    ``lloydia fit --model`` writes the same kind of file, and ``lloydia predict`` reads it.  Equal
    fits give equal files.

    Parameters
    ----------
    model : KMeans, MiniBatchKMeans or lloydia.dask.KMeans
        A fitted estimator.
    path : str or Path
        The file; its name must end in .npz.  The file appears when it is complete, and replaces an
        existing file.

    Raises
    ------
    TypeError
        If `model` is another object, such as a pipeline, or `path` is not a path.
    NotFittedError
        If `model` is not fitted.
    ValueError
        If the name does not end in .npz, if its folder does not exist, or if the file cannot hold a
        parameter or an attribute; the message names it.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : Load the estimator from such a file.

    Notes
    -----
    The file contains

    - all parameters, including an array `init` and the state of a RandomState `random_state`;
    - the fitted attributes, exactly; arrays on a GPU are loaded as NumPy arrays;
    - ``feature_names_in_``, and the setting of ``set_output``;
    - for :class:`lloydia.MiniBatchKMeans`, the state with which
      :meth:`~lloydia.MiniBatchKMeans.partial_fit` continues exactly as the saved estimator would.

    The file does not contain

    - ``labels_``: one number per row would make the file large and could disclose data;
      ``predict(X)`` gives the same labels;
    - ``seconds_seeding_``;
    - callbacks, and the client of :class:`lloydia.dask.KMeans`: set them again after loading.

    A file cannot hold a callable `init` or a stop rule of your own.  The fitted centres no longer
    depend on them, so call ``model.set_params(init="k-means++", stop=None)`` before you save.

    :func:`lloydia.k_means` and :func:`lloydia.k_means_batched` return arrays, which
    :func:`numpy.savez` saves.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import lloydia
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = lloydia.KMeans(n_clusters=2, random_state=0).fit(X)
    >>> path = Path(tempfile.mkdtemp(), "model.npz")
    >>> lloydia.save(model, path)
    >>> lloydia.load(path).predict([[0, 0], [12, 3]])
    array([1, 0], dtype=int32)
    """
    parts = _parts(model)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"save needs a path, and got a {type(path).__name__}: give the name of an .npz file."
        )
    target = Path(path)
    check_output(target, (".npz",))
    with Renames() as renames, writing(target, renames) as to:
        _write(parts, to)


def write_model(model: Any, to: Path) -> None:
    """Write a fitted estimator to a file, as :func:`save` does, whatever the name of the file.

    Raises
    ------
    TypeError, ValueError, OSError
        As :func:`save`.
    """
    _write(_parts(model), to)


def _write(parts: dict[str, NDArray], to: Path) -> None:
    with to.open("wb") as stream:
        np.savez(stream, **parts)  # type: ignore[arg-type]
        stream.flush()
        os.fsync(stream.fileno())


def _parts(model: Any) -> dict[str, NDArray]:
    """Return the arrays of the file."""
    kind, estimator = _kind_of(model)
    check_is_fitted(model)
    estimator.check(model)
    names = getattr(model, "feature_names_in_", None)
    arrays = {"cluster_centers_": model._fitted_centers()}
    if names is not None and len(names) != arrays["cluster_centers_"].shape[1]:
        raise ValueError(_refusal("feature_names_in_", names))
    for name in estimator.arrays:
        if name in vars(model):
            arrays[name] = _array(name, vars(model)[name], len(arrays["cluster_centers_"]))
    parameters = model.get_params(deep=False)
    parameters.pop("client", None)
    init = parameters["init"]
    if not isinstance(init, str) and not callable(init):
        parameters["init"] = arrays["init"] = _start(init, names)
    header = {
        "format": FORMAT,
        "version": __version__,
        "estimator": kind,
        "parameters": {name: _parameter(name, value) for name, value in parameters.items()},
        "fitted": {
            name: _fact(name, vars(model)[name]) for name in estimator.facts if name in vars(model)
        },
        "feature_names": None if names is None else [str(name) for name in names],
        "transform_output": getattr(model, "_sklearn_output_config", {}).get("transform"),
        "generators": _generators(model, arrays),
    }
    return {"header": np.array(json.dumps(header)), **arrays}


def _kind_of(model: Any) -> tuple[str, Estimator]:
    """Return the name that files use for the class of an estimator, and the class."""
    found = type(model)
    for kind, estimator in ESTIMATORS.items():
        if (found.__module__, found.__qualname__) == (estimator.module, estimator.name):
            return kind, estimator
    raise TypeError(
        f"save needs a KMeans or a MiniBatchKMeans of Lloydia, and got a "
        f"{found.__module__}.{found.__qualname__}: save other objects with pickle or joblib."
    )


def _parameter(name: str, value: Any) -> Any:
    try:
        return stored(name, value)
    except ValueError:
        raise ValueError(
            f"A model file cannot hold {name}={value!r:.80}: call "
            f"set_params({name}={INSTEAD.get(name)!r}) first; the fitted centres stay as they are."
        ) from None


def _start(init: Any, names: NDArray | None) -> NDArray:
    """Return initial centres as an array with the columns in the order of the fit's features."""
    table, own = dense("init", init)
    table = in_order_of(None if names is None else list(names), "init", table, own)
    dtype = np.float32 if table.dtype == np.float32 else np.float64
    return np.ascontiguousarray(table, dtype=dtype)


def _fact(name: str, value: Any) -> Any:
    try:
        return checked_fact(name, FACTS[name][0](value))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(_refusal(name, value)) from None


def _array(name: str, values: Any, k: int) -> NDArray:
    try:
        array = np.array(values, dtype=np.float64)
        checked_array(name, array, k)
    except (TypeError, ValueError):
        raise ValueError(_refusal(name, values)) from None
    return array


def _refusal(name: str, value: Any) -> str:
    return (
        f"A model file cannot hold {name}={value!r:.80}, which no fit sets: fit again before you "
        "save."
    )


def _generators(model: Any, arrays: dict[str, NDArray]) -> dict[str, Any]:
    """Return the states of the estimator's random generators; add their words to `arrays`."""
    found: dict[str, Any] = {}
    own, given = vars(model).get("_random_state"), model.random_state
    for name, generator in (("random_state", given), ("_random_state", own)):
        if not isinstance(generator, RandomState):
            continue
        if name == "_random_state" and generator is given:
            found[name] = GENERATOR
            continue
        state: Any = generator.get_state()
        found[name], arrays[f"words_of_{name}"] = [state[0], *state[2:]], state[1]
    return found
