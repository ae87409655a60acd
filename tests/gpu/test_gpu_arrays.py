"""Arrays of a real GPU in and out: libraries, streams, devices, memory."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from lloydia import KMeans, assign
from lloydia.cli import main
from lloydia.data.arrays import on_host
from table import answer, blobs

torch = pytest.importorskip("torch")

X = blobs(5000, 12, "float32")


@pytest.fixture(scope="module")
def expected():
    return answer(KMeans(9, random_state=0, device="cpu").fit(X))


def test_tensors(expected):
    model = KMeans(9, random_state=0).fit(torch.as_tensor(X).cuda())
    assert answer(model) == expected
    assert model.device_ == f"cuda:{torch.cuda.current_device()}"
    for array in (model.labels_, model.cluster_centers_):
        assert str(array.device) == model.device_


def test_cupy(expected):
    cupy = pytest.importorskip("cupy")
    for rows in (cupy.asarray(X), cupy.asarray(np.asfortranarray(X)), cupy.asarray(X[::-1])[::-1]):
        model = KMeans(9, random_state=0).fit(rows)
        assert answer(model) == expected
        for array in (model.labels_, model.cluster_centers_, model.predict(rows)):
            assert isinstance(array, cupy.ndarray)


def test_numba_arrays_speak_another_protocol(expected):
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("numba finds no GPU")
    model = KMeans(9, random_state=0).fit(cuda.to_device(X))
    assert answer(model) == expected
    assert isinstance(model.labels_, torch.Tensor)


def test_cudf(expected):
    cudf = pytest.importorskip("cudf")
    frame = cudf.DataFrame({f"f{j}": column for j, column in enumerate(X.T)})
    model = KMeans(9, random_state=0).fit(frame)
    assert answer(model) == expected
    assert model.feature_names_in_.tolist() == list(frame.columns)


def test_host_arrays_stream_up(expected):
    for rows in (X, np.asfortranarray(X), X[::-1][::-1], torch.as_tensor(X)):
        model = KMeans(9, random_state=0, device="cuda").fit(rows)
        assert answer(model) == expected
        assert isinstance(model.labels_, np.ndarray)


def test_large_uploads_come_in_pieces():
    from lloydia.backends.cuda.runtime.upload import to_device

    rows = np.random.default_rng(0).random((3_000_017, 20), dtype=np.float32)  # 240 MB
    for array in (rows, rows[::-1, ::2], np.asfortranarray(rows[:1_000_000])):
        tensor = to_device(array, torch.device("cuda", torch.cuda.current_device()))
        assert tensor.is_contiguous()
        assert (tensor.cpu().numpy() == array).all()


def test_work_waits_for_the_stream_that_makes_the_rows(expected):
    rows = torch.zeros(X.shape, device="cuda")
    given = torch.as_tensor(X).cuda()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(200_000_000)
        rows.copy_(given)
        assert answer(KMeans(9, random_state=0).fit(rows)) == expected


def test_another_gpu_than_the_current_one(expected):
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    rows = torch.as_tensor(X).to("cuda:1")
    for device in ("auto", "cuda", "cuda:1"):
        model = KMeans(9, random_state=0, device=device).fit(rows)
        assert answer(model) == expected
        assert model.device_ == str(model.labels_.device) == "cuda:1"
    assert answer(KMeans(9, random_state=0, device="cuda:1").fit(X)) == expected
    with pytest.raises(ValueError, match="X is on cuda:1"):
        KMeans(9, device="cuda:0").fit(rows)


def test_the_callers_rows_and_settings_stay_as_they_are():
    rows = torch.as_tensor(X).cuda()
    state = torch.cuda.get_rng_state()
    KMeans(9, random_state=0).fit(rows)
    assert (rows.cpu().numpy() == X).all()
    assert (torch.cuda.get_rng_state() == state).all()


def test_a_pickle_needs_no_gpu():
    model = KMeans(9, random_state=0).fit(torch.as_tensor(X).cuda())
    text = pickle.dumps(model)
    assert b"torch" not in text
    assert (pickle.loads(text).predict(X) == on_host(model.labels_)).all()


def test_non_finite_values():
    for value, message in ((np.nan, "Input X contains NaN"), (np.inf, "contains infinity")):
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            rows = torch.as_tensor(X).cuda().to(dtype)
            rows[4321, 7] = value
            for call in (KMeans(9).fit, lambda rows: assign(rows, X[:9])):
                with pytest.raises(ValueError, match=message):
                    call(rows)


def test_too_little_memory_is_said_before_work_starts():
    rows = torch.zeros((200_000_000, 1), dtype=torch.float16, device="cuda")
    free, _ = torch.cuda.mem_get_info()
    filler = torch.empty(free - (1 << 28), dtype=torch.uint8, device="cuda")
    try:
        with pytest.raises(MemoryError, match=r"bytes of GPU memory are needed and .* are free"):
            KMeans(9).fit(rows)
    finally:
        del filler, rows
        torch.cuda.empty_cache()


def test_scores_on_the_command_line(tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "l.npy", KMeans(9, random_state=0).fit_predict(X))
    told = []
    for device in ("cpu", "cuda"):
        command = "score", str(tmp_path / "x.npy"), str(tmp_path / "l.npy"), "--device", device
        assert main([*command, "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    for name in ("silhouette", "calinski_harabasz", "davies_bouldin"):
        assert told[1][name] == pytest.approx(told[0][name], rel=1e-12)
