"""A fit that is under way, in an .npz file, without pickle."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lloydia import __version__
from lloydia.data.columns import DataError
from lloydia.data.files import DAMAGE, load_numpy, open_input
from lloydia.data.outputs import naming, replacing
from lloydia.loop import Halt, Result
from lloydia.resuming import Snapshot

__all__ = ["FORMAT", "load_snapshot", "save_snapshot"]

FORMAT = "lloydia checkpoint 2"


def save_snapshot(snapshot: Snapshot, path: str | Path) -> None:
    """Write a snapshot; whenever the process ends, there is the old file or the new one, whole.

    Raises
    ------
    OSError
        The file cannot be written.
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
    """Read a snapshot and check all of it.

    Raises
    ------
    DataError
        There is no such file, it is not a checkpoint, it is damaged, or of another format.
    """
    stranger = (
        f"{path} is not a checkpoint: name one that lloydia.callbacks.Checkpoint wrote, or "
        "lloydia fit --checkpoint."
    )
    with open_input(path) as (stream, _):
        if not stream.read(2).startswith(b"PK"):
            raise DataError(stranger)
        stream.seek(0)
        archive = load_numpy(stream, str(path))
        if isinstance(archive, np.ndarray) or "header" not in archive.files:
            raise DataError(stranger)
        try:
            arrays = {name: archive[name] for name in archive.files}
            header = json.loads(str(arrays["header"]))
            if header["format"] != FORMAT:
                raise DataError(f"{path} has the format {header['format']!r}, not {FORMAT!r}.")
            snapshot = _read(header, arrays)
        except (*DAMAGE, LookupError, TypeError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path} is a damaged checkpoint: use an earlier one.") from None
    if header["version"] != __version__:
        warnings.warn(
            f"{path} was written by Lloydia {header['version']} and this is {__version__}: the "
            "result may differ from that of a fit without a break.",
            stacklevel=3,
        )
    return snapshot


def _read(header: dict[str, Any], arrays: dict[str, NDArray]) -> Snapshot:
    kind, *rest = header["random_state"]
    dtype = np.dtype(header["data"]["dtype"])
    shape = (int(header["parameters"]["n_clusters"]), int(header["data"]["shape"][1]))

    def centers(name: str) -> NDArray:
        return _centers(arrays[name], shape, dtype)

    results = {
        int(number): Result(
            labels=None,
            centers=centers(f"{number}_centers"),
            history=arrays[f"{number}_history"].tolist(),
            **facts,
        )
        for number, facts in header["results"].items()
    }
    halts = {
        int(number): Halt(
            int(iteration),
            centers(f"{number}_used"),
            centers(f"{number}_made"),
            arrays[f"{number}_costs"].tolist(),
        )
        for number, iteration in header["halts"].items()
    }
    np.random.RandomState().set_state(state := (kind, arrays["keys"], *rest))
    parameters, data = dict(header["parameters"]), dict(header["data"])
    return Snapshot(parameters, data, results, halts, state, arrays.get("init"))


def _centers(centers: NDArray, shape: tuple[int, int], dtype: np.dtype) -> NDArray:
    if centers.shape != shape or centers.dtype != dtype or not np.isfinite(centers).all():
        raise ValueError("centres of another shape or type")
    return np.ascontiguousarray(centers)
