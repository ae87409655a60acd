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


@pytest.fixture(autouse=True)
def nothing_guessed(monkeypatch):
    """Have a test begin without what others' fits have taught: a wrong guess begins a run again."""
    from lloydia.backends.cuda.rows import found_grid

    monkeypatch.setattr(found_grid, "_limbs", {})


@pytest.fixture
def recorded(monkeypatch):
    """Return what recordings launch, seen in the interpreter: a list for each time it is done."""
    if torch.cuda.is_available():
        pytest.skip("launches are seen in the interpreter only")
    from triton.runtime import interpreter

    from lloydia.backends.cuda.runtime import recording

    queued: dict = {}
    log = []
    launch, do = interpreter.GridExecutor.__call__, recording.Recording.do

    def told(executor, *args, **options):
        every = [*args, *sorted(options.items())]
        log.append([x.data_ptr() if isinstance(x, torch.Tensor) else x for x in every])
        launch(executor, *args, **options)

    def done(self, work, device, buffer_map=None, times=1):
        for _ in range(times):
            log.clear()
            do(self, work, device, buffer_map)
            queued.setdefault(self, []).append(list(log))

    monkeypatch.setattr(interpreter.GridExecutor, "__call__", told)
    monkeypatch.setattr(recording.Recording, "do", done)
    return queued


@pytest.fixture
def take(monkeypatch):
    """Return what has kernels be chosen for a stage, whatever the shape."""
    from lloydia.backends.cuda import dispatch

    def take_them(stage, kernels):
        monkeypatch.setitem(dispatch.TABLE, stage, (dispatch.Case(kernels, dispatch.always, ""),))

    return take_them


@pytest.fixture(params=["small", "few", "many"])
def stages(request, take):
    """Have rows in doubt go where centres take little memory, where they are few, or many."""
    from lloydia.backends.cuda.dispatch import Kernels, Stage

    stage = {"small": Kernels.ALL, "few": Kernels.PAIRS, "many": Kernels.PAIRS_THEN_ALL}
    take(Stage.RECHECK, stage[request.param])
    return request.param


@pytest.fixture
def tables(monkeypatch):
    """Return what says whether programs add rows of few features up in tables of their own."""
    from lloydia.backends.cuda.low_dim import table_sums
    from lloydia.backends.cuda.low_dim.shape import shape_of

    def choose_them(there):
        monkeypatch.setattr(table_sums, "MIN_ROWS", 0 if there else 1 << 62)
        shape_of.cache_clear()

    yield choose_them
    shape_of.cache_clear()
