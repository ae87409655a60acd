"""The state of an unfinished fit in an .npz file, without pickle."""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia.algorithms import ALGORITHMS
from lloydia.data.columns import DataError
from lloydia.data.formats.damage import DAMAGE
from lloydia.data.formats.numpy_files import load_numpy
from lloydia.data.formats.opening import open_input
from lloydia.data.models.fields import (
    check,
    is_real,
    is_whole,
    sound_centers,
    sound_costs,
    sound_state,
)
from lloydia.data.outputs import naming, replacing
from lloydia.loop.resuming import Snapshot
from lloydia.loop.run import CALLBACK, LIMIT, Halt, Result
from lloydia.loop.stored_parameters import GENERATOR, stored_array
from lloydia.parameters import check_parameters
from lloydia.spelling import either
from lloydia.stopping import parse
from lloydia.version import __version__

__all__ = ["FORMAT", "load_snapshot", "save_snapshot"]

FORMAT = "lloydia checkpoint 2"


def save_snapshot(snapshot: Snapshot, path: str | Path) -> None:
    """Write a snapshot; if the process ends meanwhile, the old file or the new one is complete.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    kind, keys, *rest = snapshot.random_state
    arrays: dict[str, Any] = {"keys": keys}
    results: dict[int, Any] = {}
    for number, result in snapshot.results.items():
        facts = result._asdict()
        del facts["labels"]
        arrays |= {f"{number}_{name}": facts.pop(name) for name in ("centers", "history")}
        results[number] = facts
    for number, halt in snapshot.halts.items():
        facts = {"used": halt.used, "made": halt.centers, "costs": halt.costs}
        arrays |= {f"{number}_{name}": values for name, values in facts.items()}
    header = {
        "format": FORMAT,
        "version": __version__,
        "parameters": snapshot.parameters,
        "data": snapshot.data,
        "random_state": [kind, *rest],
        "results": results,
        "halts": {number: halt.iteration for number, halt in snapshot.halts.items()},
    }
    if snapshot.init is not None:
        arrays["init"] = snapshot.init
    path = Path(path)
    with replacing(path) as temporary, naming(path), temporary.open("wb") as stream:
        np.savez(stream, header=np.array(json.dumps(header)), **arrays)
        stream.flush()
        os.fsync(stream.fileno())


def load_snapshot(path: str | Path) -> Snapshot:
    """Read a snapshot and check every part of it.

    Raises
    ------
    DataError
        If there is no such file, or it is not a checkpoint, is damaged, or has another format.

    Warns
    -----
    UserWarning
        If another version of Lloydia wrote the file.
    """
    stranger = (
        f"{path} is not a checkpoint: name one that "
        f"{either('lloydia.callbacks.Checkpoint', '--checkpoint')} wrote."
    )
    with open_input(path) as (stream, _):
        if not stream.read(2).startswith(b"PK"):
            raise DataError(stranger)
        stream.seek(0)
        archive = load_numpy(stream, str(path), ours=True)
        if isinstance(archive, np.ndarray) or "header" not in archive.files:
            raise DataError(stranger)
        try:
            arrays = {name: archive[name] for name in archive.files}
            header = json.loads(str(arrays["header"]))
            if header["format"] != FORMAT:
                raise DataError(f"{path} has the format {header['format']!r:.60}, not {FORMAT!r}.")
            snapshot = _read(header, arrays)
            version = header["version"]
            check(type(version) is str)
        except (*DAMAGE, LookupError, AttributeError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path} is a damaged checkpoint: use an earlier one.") from None
    if version != __version__:
        warnings.warn(
            f"{path} was written by Lloydia {version[:40]} and this is {__version__}: the "
            "result may differ from that of an uninterrupted fit.",
            stacklevel=3,
        )
    return snapshot


def _read(header: dict[str, Any], arrays: dict[str, NDArray]) -> Snapshot:
    """Return the snapshot of checked parts.

    Raises
    ------
    ValueError, LookupError, TypeError or AttributeError
        If a part is missing, of another type, or out of range.
    """
    parameters, data = dict(header["parameters"]), dict(header["data"])
    state = sound_state(header["random_state"], arrays.pop("keys"))
    _check_data(data)
    dtype, d = np.dtype(data["dtype"]), data["shape"][1]
    init = arrays.pop("init", None)
    _check_parameters(parameters, init)
    k = parameters["n_clusters"]
    check(k <= data["shape"][0])

    def part(number: int, name: str) -> NDArray:
        return sound_centers(arrays.pop(f"{number}_{name}"), (k, d), dtype)

    def costs(number: int, name: str, most: int) -> list[float]:
        return sound_costs(arrays.pop(f"{number}_{name}"), most)

    if init is not None:
        init = sound_centers(init, (k, d), dtype)
    results, halts = {}, {}
    for number, facts in _numbered(header["results"]).items():
        _check_result(facts, parameters["max_iter"])
        history = costs(number, "history", facts["n_iter"])
        results[number] = Result(None, part(number, "centers"), history=history, **facts)
    for number, iteration in _numbered(header["halts"]).items():
        check(is_whole(iteration, 1, parameters["max_iter"]))
        used, made = part(number, "used"), part(number, "made")
        halts[number] = Halt(iteration, used, made, costs(number, "costs", iteration))
    _check_runs(results, halts, _most_runs(parameters, init))
    check(arrays.keys() == {"header"})
    return Snapshot(parameters, data, results, halts, state, init)


def _check_data(data: dict[str, Any]) -> None:
    check(data.keys() == {"shape", "dtype", "digest"})
    n, d = data["shape"]
    check(is_whole(n, 1) and is_whole(d, 1) and data["dtype"] in ("float32", "float64"))
    check(re.fullmatch("[0-9a-f]{64}", data["digest"]) is not None)


def _check_parameters(parameters: dict[str, Any], init: NDArray | None) -> None:
    """Check the parameters as the estimator does."""
    given = SimpleNamespace(**parameters)
    check(type(given.init) is str)
    if init is not None:
        check(given.init == stored_array(init))
        given.init = init
    given.stop = None if given.stop is None else parse(given.stop)
    given.random_state = None if given.random_state == GENERATOR else given.random_state
    check_parameters(given)
    check(isinstance(given.device, str) and is_whole(given.n_clusters, 1))


def _check_result(facts: dict[str, Any], max_iter: int) -> None:
    check(facts.keys() == set(Result._fields) - {"labels", "centers", "history"})
    check(is_real(facts["inertia"]) and facts["inertia"] >= 0)
    check(is_whole(facts["n_iter"], 1, max_iter) and facts["algorithm"] in ALGORITHMS)
    check(type(facts["converged"]) is type(facts["full"]) is bool)
    check(type(facts["reason"]) is str and facts["reason"] != "")
    check(facts["converged"] == (facts["reason"] not in (CALLBACK, LIMIT)))


def _check_runs(results: dict[int, Result], halts: dict[int, Halt], most: int) -> None:
    """Check that run numbers are consecutive, and that complete runs with a halt can continue."""
    numbers = results.keys() | halts.keys()
    check(0 < len(numbers) <= most and numbers == set(range(len(numbers))))
    for number in results.keys() & halts.keys():
        check(results[number].reason in (CALLBACK, LIMIT))
        check(results[number].n_iter == halts[number].iteration)


def _numbered(given: dict[str, Any]) -> dict[int, Any]:
    """Return the stored parts of runs by their numbers."""
    check(all(re.fullmatch("0|[1-9][0-9]{0,9}", number) for number in given))
    return {int(number): value for number, value in given.items()}


def _most_runs(parameters: dict[str, Any], init: NDArray | None) -> int:
    if init is not None:
        return 1
    # "auto" is never more than this.
    return 10 if parameters["n_init"] == "auto" else parameters["n_init"]
