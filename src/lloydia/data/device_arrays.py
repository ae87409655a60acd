"""Arrays on a GPU: torch tensors, CuPy arrays, cuDF data frames, and others that support DLPack.

A caller's array becomes a torch tensor that shares its memory, and what an engine returns becomes
an array of the caller's library, on the caller's device.  For arrays on the host nothing is
imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.data.collections import is_collection
from lloydia.imports import load

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "aligned_to_16",
    "as_tensor",
    "center_dtype",
    "load_torch",
    "n_distinct",
    "on_gpu",
    "returning",
    "rows_of",
]

# DLPack's numbers of CUDA memory, plain and managed, and torch's name of it.
DLPACK = (2, 13)
TORCH = ("cuda",)


def load_torch() -> Any:
    """Import torch for an array on a GPU.

    Raises
    ------
    ImportError
        If torch is not installed.
    """
    try:
        return load("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            "X is on a GPU, which needs PyTorch and Triton: pip install torch triton, or copy "
            "X to the CPU (X.get() for CuPy)."
        ) from None


def on_gpu(X: Any) -> bool:
    """Return whether `X` is an array or a data frame in the memory of a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        return X.device.type in TORCH
    if X is None or isinstance(X, np.ndarray | list | str):
        return False
    if hasattr(X, "__dlpack_device__"):
        return X.__dlpack_device__()[0] in DLPACK
    return hasattr(X, "__cuda_array_interface__") or hasattr(X, "to_cupy")


def as_tensor(X: Any) -> Tensor:
    """Return an array on a GPU as a torch tensor of the same type that shares its memory.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        If `X` is sparse.
    """
    torch = load_torch()
    if hasattr(X, "to_cupy"):
        X = X.to_cupy()
    if isinstance(X, torch.Tensor):
        if X.layout != torch.strided:
            raise ValueError("X is sparse, and the GPU takes dense data: use X.to_dense().")
        return X.detach().resolve_neg() if X.requires_grad or X.is_neg() else X
    if min(getattr(X, "strides", None) or (0,)) < 0:
        X = X.copy()  # torch does not support negative strides
    if hasattr(X, "__dlpack__"):
        return torch.from_dlpack(X)
    tensor = torch.as_tensor(X, device="cuda")
    torch.cuda.synchronize(tensor.device)  # this protocol does not synchronise streams
    return tensor


def returning(X: Any) -> Callable[[Any], Any]:
    """Return the function that converts ndarrays and tensors to the library and device of `X`.

    `X` is on a GPU.  The result is a torch tensor if the library of `X` does not import DLPack, and
    a CuPy array for cuDF.
    """
    torch = load_torch()
    if isinstance(X, torch.Tensor):
        device, kind = X.device, torch.Tensor

        def there(values: Any) -> Any:
            # The values are mostly on the device already; this test is faster than torch's.
            if isinstance(values, kind) and values.device == device:
                return values
            return torch.as_tensor(values, device=device)

        return there
    device, build = as_tensor(X[:1]).device, _importer(X)
    return lambda values: build(torch.as_tensor(values, device=device))


def _importer(X: Any) -> Callable[[Tensor], Any]:
    """Return the DLPack importer of the library of `X`."""
    if hasattr(X, "__array_namespace__"):
        return X.__array_namespace__().from_dlpack
    library = "cupy" if hasattr(X, "to_cupy") else type(X).__module__.partition(".")[0]
    return getattr(sys.modules.get(library), "from_dlpack", lambda tensor: tensor)


def center_dtype(X: Any) -> np.dtype:
    """Return the type of the centres of rows of any library: float64 for float64, else float32."""
    return np.dtype(np.float64 if str(X.dtype).endswith("float64") else np.float32)


def rows_of(X: Any, rows: NDArray) -> Any:
    """Return some rows of X, given their indices or a mask, on the device of X."""
    return X[load_torch().as_tensor(rows, device=X.device)] if on_gpu(X) else X[rows]


def aligned_to_16(X: Any) -> Any:
    """Return an array; a tensor on a GPU is copied if its address is no multiple of 16 bytes.

    Kernels have another form for other addresses.
    """
    return X.clone() if on_gpu(X) and X.data_ptr() % 16 else X


def n_distinct(labels: Any, n_clusters: int) -> int:
    """Return the number of distinct labels in an ndarray, a tensor or a Dask array."""
    if is_collection(labels):
        return int(np.count_nonzero(load("dask.array").bincount(labels, minlength=n_clusters)))
    if isinstance(labels, np.ndarray):
        # Most often, the first rows contain all labels.
        found = np.count_nonzero(np.bincount(labels[: 64 * n_clusters], minlength=n_clusters))
        if found < n_clusters:
            found = np.count_nonzero(np.bincount(labels, minlength=n_clusters))
        return int(found)
    return load("lloydia.backends.cuda.rows.distinct").n_distinct(labels, n_clusters)
