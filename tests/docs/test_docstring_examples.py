"""The examples in the docstrings of the public reference run and print what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    *("estimators.kmeans", "estimators.minibatch", "estimators.functions", "estimators.batched"),
    *("stopping.rules", "stopping.text"),
    *("data.models.reading", "data.models.writing", "data.chunks"),
    *("metrics.silhouette", "metrics.calinski_harabasz", "metrics.davies_bouldin"),
    *("images.segments", "images.quantization", "images.color"),
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    if name.startswith("images."):
        pytest.importorskip("PIL")
    found = doctest.testmod(importlib.import_module(f"lloydia.{name}"))
    assert found.attempted
    assert not found.failed
