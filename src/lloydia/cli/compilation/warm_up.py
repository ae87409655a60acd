"""`lloydia warm-up`: compile kernels before they are needed, for images and clusters."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lloydia.cli.compilation.fits import DEFAULTS, fits, rows_of_shape, shapes_of
from lloydia.cli.compilation.folders import numba_folder, triton_folder
from lloydia.cli.compilation.kernels import compiled_for_cpu, compiled_for_gpu
from lloydia.cli.info import Shape
from lloydia.cli.options import Json
from lloydia.cli.progress import progress
from lloydia.cli.report import print_json
from lloydia.spelling import printable


def warm_up(
    *,
    device: Annotated[
        Literal["cpu", "cuda"], Parameter(help="What to compile for: the CPU or PyTorch's GPU.")
    ] = "cpu",
    shapes: Annotated[
        list[Shape] | None,
        Parameter(
            converter=shapes_of,
            n_tokens=1,
            accepts_keys=False,
            consume_multiple=(1, sys.maxsize),
            negative="",
            help="ROWS,FEATURES,CLUSTERS of the data that will be fitted, once or several times; "
            "by default some common shapes.",
        ),
    ] = None,
    dtype: Annotated[
        list[Literal["float32", "float64"]] | None,
        Parameter(
            consume_multiple=(1, sys.maxsize),
            negative="",
            help="Types of the data; both types by default.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compile the kernels that first fits need, and store them on disk.

    It runs small fits with every algorithm and option that has kernels of its own.  A first fit of
    the same features, clusters and types then loads the kernels within seconds.

    Example: lloydia warm-up --shapes 150,4,3 20000,16,32
    """
    cases, began = [], time.perf_counter()
    with progress("compiling", json=json, timed=True) as shown:
        folder = cache_folder(device)
        for each in dtype or ("float32", "float64"):
            for shape in shapes or DEFAULTS[device]:
                shown.say(f"compiling for {spelled(each, shape)}")
                cases.append(compiled(device, shape, each))
    total, seconds = sum(case.n_kernels for case in cases), time.perf_counter() - began
    if json:
        facts = {"device": device, "compiled": total, "seconds": seconds, "folder": str(folder)}
        print_json({**facts, "cases": [asdict(case) for case in cases]})
        return
    for case in cases:
        if case.n_kernels:
            print(case.words())
    print(f"{counted(total)} compiled in {seconds:.1f} s" if total else "nothing left to compile")
    print(f"compiled kernels are in {printable(str(folder))}")


@dataclass(frozen=True)
class Case:
    """What was compiled for data of one type and shape: the kernels of each fit."""

    dtype: str
    shape: Shape
    seconds: float
    kernels: dict[str, list[str]]

    @property
    def n_kernels(self) -> int:
        """The number of kernels."""
        return sum(map(len, self.kernels.values()))

    def words(self) -> str:
        """Return one line that says what was compiled."""
        found = ", ".join(f"{name} {len(names)}" for name, names in self.kernels.items())
        where = spelled(self.dtype, self.shape)
        return f"{where}: {counted(self.n_kernels)} in {self.seconds:.1f} s ({found})"


def counted(n_kernels: int) -> str:
    """Return a number of kernels in words."""
    return f"{n_kernels:,} kernel{'s' * (n_kernels != 1)}"


def spelled(dtype: str, shape: Shape) -> str:
    """Return a type and a shape in words."""
    return f"{dtype}, {shape.rows:,} x {shape.features:,}, k = {shape.clusters:,}"


def cache_folder(device: str) -> Path:
    """Return where kernels of a device are stored.

    Raises
    ------
    ValueError, ImportError
        The device is missing, or no folder can be written.
    """
    import numpy as np

    from lloydia.backends import put

    put(device, np.zeros((1, 1), dtype=np.float32))
    try:
        return numba_folder() if device == "cpu" else triton_folder()
    except (RuntimeError, OSError):
        raise ValueError(
            "no folder for compiled kernels can be written: set NUMBA_CACHE_DIR to a folder that "
            "can be."
        ) from None


def compiled(device: str, shape: Shape, dtype: str) -> Case:
    """Compile the kernels of one type and shape."""
    from sklearn.exceptions import ConvergenceWarning

    from lloydia.backends.numpy_first import compiled_only

    X, began = rows_of_shape(shape, dtype, device), time.perf_counter()
    observed, kernels = compiled_for_cpu if device == "cpu" else compiled_for_gpu, {}
    with compiled_only(), observed() as taken, warnings.catch_warnings():
        # Random data may have fewer clusters than wanted.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, run in fits(X, shape.clusters, device):
            run()
            if names := taken():
                kernels[name] = names
    return Case(dtype, shape, time.perf_counter() - began, kernels)
