"""Sources that may take so little memory that they have to be read again in every pass."""

from __future__ import annotations

import lloydia
from lloydia.backends.weighted import WeightedRows


def tight(what, meant, kept=0, weighted=False, **options):
    """Open a source with room for so many blocks beside what `meant(source)` cannot do without."""
    source = lloydia.chunks(what, memory="1TB", **options)
    plan = meant(source).plan(weighted, None)
    assert plan.whole
    block = plan.rows * source.shape[1] * meant(source).dtype.itemsize
    source.memory = plan.peak - plan.kept + kept * block
    plan = meant(source).plan(weighted, None)
    assert not plan.whole
    assert plan.n_kept >= kept
    return source


def for_fit(estimator, weights=None):
    return lambda source: WeightedRows.checked(source.meant_for(estimator, reset=True), weights).X
