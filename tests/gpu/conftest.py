"""Tests for a real GPU: `make gpu-tests`.  Without one they are skipped."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    try:
        import torch

        found = torch.cuda.is_available()
    except ImportError:
        found = False
    if not found:
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(reason="no GPU that PyTorch can use"))
