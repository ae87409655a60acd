"""GPU kernels run in Triton's interpreter where there is no GPU."""

import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

if not torch.cuda.is_available():
    # Read when the kernels are imported.
    os.environ["TRITON_INTERPRET"] = "1"
