"""GPU kernels run in Triton's interpreter where there is no GPU, on tensors of the host."""

import os

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    # Read when Triton, and then when the kernels, are imported.
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton")


@pytest.fixture
def device(monkeypatch):
    """Return where torch's arrays are "on a GPU": on the host where kernels are interpreted."""
    from lloydia.data import device_arrays

    if torch.cuda.is_available():
        return "cuda"
    monkeypatch.setattr(device_arrays, "TORCH", ("cuda", "cpu"))
    monkeypatch.setattr(device_arrays, "DLPACK", (1, *device_arrays.DLPACK))
    return "cpu"
