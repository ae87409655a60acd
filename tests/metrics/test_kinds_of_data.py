"""The scores take the kinds of rows and labels that the estimators take."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lloydia import metrics

SCORES = ["calinski_harabasz_score", "davies_bouldin_score", "silhouette_score"]
X = np.random.default_rng(0).integers(0, 100, size=(12, 3))
BITS = X > 50
LABELS = np.array([0, 1, 2] * 4)


def torch(values, dtype):
    module = pytest.importorskip("torch")
    return module.tensor(values).to(getattr(module, dtype))


ROWS = {
    **{kind: lambda kind=kind: X.astype(kind) for kind in
       ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
        "float32", "longdouble", ">i4", ">u2", ">f4", ">f8", "object"]},
    **{f"torch {kind}": lambda kind=kind: torch(X, kind) for kind in
       ["uint8", "int64", "float16", "bfloat16", "float64"]},
    "list": X.tolist,
    "pandas": lambda: pd.DataFrame(X),
    "pandas Int16": lambda: pd.DataFrame(X).astype("Int16"),
    "pandas Float32": lambda: pd.DataFrame(X).astype("Float32"),
}  # fmt: skip
TRUTHS = {
    "bool": lambda: BITS,
    "list of bool": BITS.tolist,
    "torch bool": lambda: torch(BITS, "bool"),
    "pandas bool": lambda: pd.DataFrame(BITS),
    "pandas boolean": lambda: pd.DataFrame(BITS).astype("boolean"),
    "objects": lambda: BITS.astype(object),
}
OTHERS = {
    "negative": lambda: LABELS - 5,
    "float": lambda: LABELS.astype(float),
    "half": lambda: LABELS.astype("f2"),
    "big-endian": lambda: LABELS.astype(">i4"),
    "unsigned": lambda: LABELS.astype("u1"),
    "text": lambda: np.array(list("abc" * 4)),
    "big-endian text": lambda: np.array(list("abc" * 4), ">U1"),
    "objects": lambda: np.array(list("abc" * 4), object),
    "categories": lambda: pd.Categorical(list("abc" * 4)),
    "series of categories": lambda: pd.Series(list("abc" * 4), dtype="category"),
    "Int64": lambda: pd.Series(LABELS, dtype="Int64"),
    "strings": lambda: pd.Series(list("abc" * 4), dtype="string"),
    "torch": lambda: torch(LABELS, "int32"),
    "torch bfloat16": lambda: torch(LABELS, "bfloat16"),
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows_of_any_kind(kind):
    for name in SCORES:
        score = getattr(metrics, name)
        assert score(ROWS[kind](), LABELS) == score(X.astype(float), LABELS)


@pytest.mark.parametrize("kind", TRUTHS)
def test_rows_of_truths(kind):
    for name in SCORES:
        score = getattr(metrics, name)
        assert score(TRUTHS[kind](), LABELS) == score(BITS.astype(float), LABELS)
    assert metrics.silhouette_score(np.eye(4, dtype=bool), [0, 0, 1, 1]) == 0


@pytest.mark.parametrize("kind", OTHERS)
def test_labels_of_any_kind(kind):
    for name in SCORES:
        assert getattr(metrics, name)(X, OTHERS[kind]()) == getattr(metrics, name)(X, LABELS)


def test_labels_of_two_truths():
    for name in SCORES:
        score = getattr(metrics, name)
        for labels in (LABELS > 0, torch(LABELS > 0, "bool"), pd.Series(LABELS > 0)):
            assert score(X, labels) == score(X, (LABELS > 0).astype(int))
