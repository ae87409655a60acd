"""Checks of rows on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from lloydia.data.arrays import ROWS, on_host, refuse_complex
from lloydia.data.device_arrays import as_tensor
from lloydia.data.non_finite import advice_for

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["check_rows", "refuse_non_finite"]

# The types that rows keep; all others become float64, as on the CPU.
KEPT = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64")


def check_rows(X: Any, estimator: Any = None, reset: bool = True) -> Tensor:
    """Return the rows of an array on a GPU as a tensor, checked except for NaN and infinity.

    The engine finds NaN and infinity when it measures the rows, so that the rows are read once; see
    :func:`refuse_non_finite`.

    Parameters
    ----------
    X : array or data frame on a GPU
    estimator : estimator, optional
        The number of features and their names are set in it, or compared if `reset` is False.
    reset : bool

    Returns
    -------
    Tensor of shape (n_samples, n_features)
        It shares the memory of `X` unless the type must change.

    Raises
    ------
    ValueError
        scikit-learn's error, for a wrong shape, complex numbers or a wrong number of features.
    """
    rows = as_tensor(X)
    if rows.is_complex():
        refuse_complex(rows.dtype)
    if rows.ndim != 2 or 0 in rows.shape:
        check_array(on_host(rows), **ROWS, estimator=estimator, input_name="X")
    if str(rows.dtype) not in KEPT:
        rows = rows.double()
    if estimator is not None:
        _check_features(X if hasattr(X, "__dataframe__") else rows, estimator, reset)
    return rows


def _check_features(X: Any, estimator: Any, reset: bool) -> None:
    d, named = X.shape[1], hasattr(X, "__dataframe__") or hasattr(estimator, "feature_names_in_")
    if named or not (reset or d == getattr(estimator, "n_features_in_", d)):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    elif reset:
        # scikit-learn's validation takes longer than an iteration over few rows.
        estimator.n_features_in_ = d


def refuse_non_finite(X: Tensor) -> None:
    """Raise ValueError if a tensor holds NaN or infinity.

    It reads all of `X`, so engines call it only after a result that depends on all rows is not
    finite.  They may have some of the caller's rows, so the message names no row.
    """
    wrong = ~X.isfinite()
    if not bool(wrong.any()):
        return
    missing = X.isnan()
    found = bool(missing.any())
    columns = (missing if found else wrong).any(dim=0).nonzero().flatten().tolist()
    raise ValueError(
        f"Input X contains {'NaN' if found else 'infinity'} in {len(columns):,} of {X.shape[1]:,} "
        f"columns, first in column {columns[0] + 1}; {advice_for(X, found)}."
    )
