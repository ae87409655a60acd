"""GPU kernels run in Triton's interpreter where there is no GPU."""

import os

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    # Read when Triton, and then when the kernels, are imported.
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton")
