from __future__ import annotations

import pytest

from lloydia import stopping


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("labels", stopping.Labels()),
        ("labels:0.001", stopping.Labels(0.001)),
        (" inertia:1e-6 ", stopping.Inertia(1e-6)),
        ("labels | centers:5e-6", stopping.Labels() | stopping.Centers(5e-6)),
    ],
)
def test_parse(text, rule):
    assert stopping.parse(text) == rule


@pytest.mark.parametrize(
    "text", ["", "label", "inertia", "centers:x", "labels:2", "labels:-1", "a|b"]
)
def test_parse_refuses_in_one_sentence(text):
    with pytest.raises(ValueError, match="stop rule") as error:
        stopping.parse(text)
    assert "\n" not in str(error.value)
