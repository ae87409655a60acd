from __future__ import annotations

import pytest
import torch

from lloydia.backends.cuda.rows.distinct import n_distinct
from lloydia.backends.cuda.runtime.launching import place


@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 3), (3000, 2), (5000, 4000), (9000, 1500)])
def test_labels_are_counted_once(n, k):
    labels = torch.randint(
        0, k, (n,), dtype=torch.int32, generator=torch.Generator().manual_seed(n)
    )
    assert n_distinct(labels.to(place("cuda")), k) == len(labels.unique())


def test_a_label_that_comes_late_is_seen():
    labels = torch.zeros(5000, dtype=torch.int32, device=place("cuda"))
    labels[4999] = 2
    assert n_distinct(labels, 3) == 2
