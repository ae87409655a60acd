"""Segments: clustering colours is clustering pixels; what comes back is a picture."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_sample_image

from lloydia import KMeans
from lloydia.images import boundaries, segment
from lloydia.images.borders import without_specks
from lloydia.images.color import SPACES, space
from lloydia.loop.empty import EmptyClusterError

NAMES = [known.name for known in SPACES]


@pytest.fixture(scope="module")
def photo():
    """A corner of a photograph, 80 x 100 pixels, of some thousand colours."""
    return np.ascontiguousarray(load_sample_image("china.jpg")[100:180, 200:300])


@pytest.fixture(scope="module")
def poster():
    """40 colours with very different counts, one of them 16,000 pixels and more."""
    rng = np.random.default_rng(1)
    colors = rng.integers(0, 256, (40, 3)).astype(np.uint8)
    picture = colors[rng.geometric(0.2, (150, 200)).clip(max=40) - 1]
    picture[:80] = colors[0]
    picture[80, :40] = colors
    return picture


def pixelwise(picture, k, name, starts, **options):
    """Return a fit of every pixel, as rows of their own."""
    there = space(name)
    rows = there.points(picture.reshape(-1, 3))
    return KMeans(k, init=there.points(starts), n_init=1, tol=0, max_iter=300, **options).fit(rows)


def starts_of(picture, k, seed=0):
    colors = np.unique(picture.reshape(-1, 3), axis=0)
    return colors[np.random.default_rng(seed).choice(len(colors), k, replace=False)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["photo", "poster"])
def test_colours_are_clustered_as_pixels(name, which, request):
    picture = request.getfixturevalue(which)
    for k in (2, 7):
        starts = starts_of(picture, k, seed=k)
        found = segment(picture, k, name, init=starts)
        each = pixelwise(picture, k, name, starts)
        assert found.labels.tobytes() == each.labels_.tobytes()
        assert found.centers.tobytes() == each.cluster_centers_.tobytes()
        assert found.n_iter == each.n_iter_
        assert found.inertia == pytest.approx(each.inertia_, rel=1e-14)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_picture_is_clustered_as_its_pixels(data):
    full = data.draw(st.sampled_from([255, 65535]))
    few = data.draw(st.lists(st.tuples(*[st.integers(0, full)] * 3), min_size=1, max_size=8))
    colors = np.array(few, dtype=np.uint8 if full == 255 else np.uint16)
    counts = data.draw(st.lists(st.integers(1, 400), min_size=len(few), max_size=len(few)))
    picture = np.repeat(colors, counts, axis=0)[None]
    distinct = np.unique(colors, axis=0)
    k = data.draw(st.integers(1, len(distinct)))
    name = data.draw(st.sampled_from(NAMES))
    try:
        each = pixelwise(picture, k, name, distinct[:k], empty="error")
    except EmptyClusterError:
        assume(False)
    found = segment(picture, k, name, init=distinct[:k])
    assert found.labels.tobytes() == each.labels_.tobytes()
    assert found.centers.tobytes() == each.cluster_centers_.tobytes()


@pytest.mark.parametrize("name", ["RGB", "Lab"])
def test_sixteen_bits_are_clustered_as_pixels(name):
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 65536, (500, 3)).astype(np.uint16)[rng.integers(0, 500, (60, 70))]
    starts = starts_of(picture, 5)
    found, each = segment(picture, 5, name, init=starts), pixelwise(picture, 5, name, starts)
    assert found.labels.tobytes() == each.labels_.tobytes()
    assert found.centers.tobytes() == each.cluster_centers_.tobytes()
    assert found.n_colors == len(np.unique(picture.reshape(-1, 3), axis=0))


def test_the_reference_and_threads_agree(photo):
    small = photo[::4, ::4]
    answers = [segment(small, 5, device=device) for device in ("cpu", "reference")]
    answers += [segment(small, 5, n_threads=n) for n in (1, 3)]
    for found in answers[1:]:
        assert found.labels.tobytes() == answers[0].labels.tobytes()
        assert found.centers.tobytes() == answers[0].centers.tobytes()


def test_starting_colours_are_written_as_they_are_in_the_picture(photo):
    colors = [[10, 20, 30], [200, 210, 220]]
    expected = segment(photo, 2, init=np.array(colors, np.uint8))
    assert (segment(photo, 2, init=colors).labels == expected.labels).all()
    for wrong in (
        [10, 20, 300],
        [0.5, 0, 0],
        [math.nan, 0, 0],
        [1e300, 0, 0],
        [1j, 0, 0],
        [*"abc"],
    ):
        with pytest.raises(ValueError, match="and the picture uint8: give colours in the type"):
            segment(photo, 2, init=[wrong, wrong])
    decimal = photo[..., :3].astype(np.float32) / 255
    start = [[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]]
    expected = segment(decimal, 2, init=np.array(start, np.float32))
    assert (segment(decimal, 2, init=start).labels == expected.labels).all()
    for wrong in (math.nan, 1e300, 200.0, -0.5):
        with pytest.raises(ValueError, match=r"init holds colours outside of \[0, 1\]"):
            segment(decimal, 2, init=[[wrong, 0, 0], [1, 1, 1]])
    with pytest.raises(ValueError, match="init holds uint16 and the picture uint8"):
        segment(photo, 2, init=np.array(colors, np.uint16))


@pytest.mark.parametrize("init", ["k-means++", "random", "farthest", "k-means||"])
def test_a_turned_picture_has_the_same_segments(photo, init):
    upright = segment(photo, 5, init=init, random_state=3)
    turned = segment(np.rot90(photo), 5, init=init, random_state=3)
    assert np.array_equal(np.rot90(upright.labels), turned.labels)
    assert np.array_equal(upright.palette, turned.palette)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", ["(h, w)", 1, 2, 3, 4])
def test_types_and_shapes(photo, dtype, channels):
    n_colors = {2: 1, 4: 3}.get(channels, channels)
    picture = np.dstack([photo[::3, ::2]] * 2) / 255
    if channels == "(h, w)":
        picture, n_colors = picture[..., 0], 1
    else:
        picture = picture[..., :channels]
    full = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    picture = (picture * full).astype(dtype)
    before = picture.copy()
    found = segment(picture, 4, "lab")
    assert np.array_equal(picture, before)
    assert (found.image.shape, found.image.dtype) == (picture.shape, dtype)
    assert (found.labels.shape, found.labels.dtype) == (picture.shape[:2], np.int32)
    flat, image = (p.reshape(found.labels.size, -1) for p in (picture, found.image))
    assert found.palette.dtype == dtype
    assert found.palette.shape == ((4, 3) if n_colors == 3 else (4,))
    painted = found.palette[found.labels].reshape(len(flat), -1)
    assert np.array_equal(image[:, :n_colors], painted)
    assert np.array_equal(image[:, n_colors:], flat[:, n_colors:])
    seen = (flat[:, n_colors:] > 0).all(axis=1)
    for j in range(4):
        mean = flat[seen & (found.labels.ravel() == j), :n_colors].mean(axis=0, dtype=np.float64)
        assert found.palette[j] == pytest.approx(mean, abs=0.5 + 1e-9 if full > 1 else 1e-6)


def test_the_mean_is_of_stored_values():
    picture = np.array([[[0, 0, 0], [100, 0, 0], [255, 200, 7]]], dtype=np.uint8)
    found = segment(picture, 1, "linear")
    assert found.palette.tolist() == [[118, 67, 2]]
    assert (found.image == found.palette[0]).all()


def test_what_cannot_be_seen_does_not_count():
    picture = np.zeros((10, 10, 4), dtype=np.uint8)
    picture[:, :5] = (200, 10, 10, 255)
    picture[:, 5:] = (10, 10, 200, 1)
    picture[0] = (0, 255, 0, 0)
    found = segment(picture, 2)
    assert sorted(found.palette.tolist()) == [[10, 10, 200], [200, 10, 10]]
    assert found.n_colors == 2
    assert np.array_equal(found.image[..., 3], picture[..., 3])
    as_floats = segment(picture / 255, 2)
    assert np.sort(as_floats.palette, axis=0) * 255 == pytest.approx(np.sort(found.palette, axis=0))


def test_a_picture_that_cannot_be_seen_has_segments_too():
    picture = np.zeros((4, 4, 4), dtype=np.uint8)
    picture[:2, :, 0] = 90
    assert sorted(segment(picture, 2).palette[:, 0].tolist()) == [0, 90]


def test_more_segments_than_colours_is_said(poster):
    with pytest.warns(UserWarning, match=r"the picture has fewer colours \(40\) than k=64"):
        found = segment(poster, 64)
    assert found.palette.shape == (40, 3)
    assert np.array_equal(found.image, poster)


def test_place_counts_with_xy(photo):
    small = photo[::2, ::2]
    ends = [boundaries(segment(small, 8, "lab", xy=xy).labels).sum() for xy in (0.0, 0.5, 2.0)]
    assert ends[0] > 1.2 * ends[1] > 1.2 * 1.2 * ends[2]
    # With places alone, as a very large weight has it, segments are compact cells.
    found = segment(small, 4, xy=1e4, random_state=1)
    y, x = np.indices(found.labels.shape)
    for j in range(4):
        there = found.labels == j
        assert np.hypot(x[there].std(), y[there].std()) < 0.75 * np.hypot(x.std(), y.std())
    assert found.centers.shape == (4, 5)


def test_xy_is_in_units_of_black_to_white():
    for dtype in (np.uint8, np.uint16, np.float32):
        white = np.iinfo(dtype).max if dtype is not np.float32 else 1
        picture = np.zeros((1, 4), dtype=dtype)
        picture[0, ::2] = white  # opposite neighbours: colour or halves, by which is nearer
        for name in ("RGB", "Lab", "HSV"):
            assert np.ptp(segment(picture, 2, name, xy=0.5).labels[0, ::2]) == 0
            halves = segment(picture, 2, name, xy=4.0).labels[0]
            assert halves[0] == halves[1] != halves[2] == halves[3]


def test_boundaries():
    labels = np.array([[0, 0, 1], [0, 0, 1], [2, 2, 2]])
    assert boundaries(labels).tolist() == [
        [False, True, False],
        [True, True, True],
        [False, False, False],
    ]


def test_specks_belong_to_what_is_near_them():
    labels = np.zeros((6, 9), np.int32)
    labels[:, 5:] = 1
    labels[1, 1:3] = labels[4, 8] = labels[0, 4] = 2  # no pieces by themselves
    labels[2, 3] = 1  # meets the other piece at no side
    clean = without_specks(labels, 3)
    assert (clean[:, :4] == 0).all()
    assert (clean[:, 5:] == 1).all()
    assert set(clean[:, 4]) <= {0, 1}
    # Of exactly so many pixels a piece stays.
    assert (without_specks(labels, 2)[1, 1:3] == 2).all()
    assert without_specks(labels, 2)[4, 8] == 1
    for least in (0, 1, 100):
        assert np.array_equal(without_specks(labels, least), labels)


def test_other_layouts(photo):
    expected = segment(photo, 4)
    torch = pytest.importorskip("torch")
    for picture in (photo[:, ::-1][:, ::-1], np.asfortranarray(photo), torch.as_tensor(photo)):
        found = segment(picture, 4)
        assert isinstance(found.labels, np.ndarray)
        assert np.array_equal(found.labels, expected.labels)
        assert np.array_equal(found.image, expected.image)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_tensors_take_their_own_way(photo, dtype, channels, monkeypatch):
    """What runs on a GPU, run with tensors on the host: the same bits as with arrays."""
    torch = pytest.importorskip("torch")
    picture = np.dstack([photo[::2, ::2]] * 2)[..., :channels].copy()
    picture[:4, :, -1] = 0
    full = {np.uint8: 1, np.uint16: np.uint16(257), np.float32: np.float32(1 / 255)}[dtype]
    picture = (picture * full).astype(dtype)
    expected = [segment(picture, 4, xy=xy) for xy in (0.0, 0.5)]
    for module in ("segments", "colors"):
        monkeypatch.setattr(
            f"lloydia.images.{module}.on_gpu", lambda array: isinstance(array, torch.Tensor)
        )
    for xy, by_arrays in zip((0.0, 0.5), expected):
        found = segment(torch.as_tensor(picture), 4, xy=xy)
        for name in ("labels", "image", "palette", "centers"):
            by_tensors = np.asarray(getattr(found, name))
            assert by_tensors.tobytes() == getattr(by_arrays, name).tobytes()


def test_every_colour_of_the_cube_has_its_place():
    codes = np.arange(1 << 24, dtype=np.uint32)[:: 4095 * 3 + 1]
    corners = np.array([0, 255, 255 << 8, 255 << 16, (1 << 24) - 1, 4096, 4095], dtype=np.uint32)
    codes = np.unique(np.concatenate([codes, corners]))
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=-1).astype(np.uint8)
    found = segment(colors[None, ::-1], len(colors), "rgb", init=colors, max_iter=1)
    assert np.array_equal(found.labels[0, ::-1], np.arange(len(colors)))
    assert np.array_equal(found.palette, colors)


@pytest.mark.parametrize(
    ("pixels", "options", "message"),
    [
        (np.zeros(5), {}, r"an array of shape \(5,\) is not a picture"),
        ("photo.png", {}, "'photo.png' is a text, not pixels"),
        (np.full((4, 4, 3), np.nan), {}, "pixels hold NaN: give numbers from 0 to 1"),
        (np.zeros((4, 4, 5), np.uint8), {}, r"an array of shape \(4, 4, 5\) is not a picture"),
        (np.zeros((0, 4, 3), np.uint8), {}, "the picture has no pixels"),
        (np.zeros((4, 4, 3), np.int32), {}, "pixels of type int32 are not supported"),
        (np.full((4, 4), 7.0), {}, "floating pixels reach from 7 to 7"),
        (np.eye(4), {"k": 0}, "k=0 must be an integer >= 1"),
        (np.eye(4), {"space": "yuv"}, "Unknown colour space 'yuv': use one of RGB"),
        (np.eye(4), {"init": "first"}, "init='first' must be one of 'k-means"),
        (np.eye(4), {"init": None}, "init=None must be one of 'k-means.*or an array of colours"),
        (np.eye(4), {"init": np.array(3.0)}, r"init=array\(3.\) must be one of 'k-means"),
        (np.eye(4), {"init": [[1.0], [2.0, 3.0]]}, "init holds 2 rows of different lengths"),
        (np.eye(4), {"init": []}, "init holds 0 colours of 1 channels: 2 of 1 are needed"),
        (np.eye(4), {"xy": -1.0}, r"xy=-1.0 must be a number >= 0"),
        (np.eye(4), {"xy": 1e31}, r"xy=1e\+31 must be a number >= 0, at most 1e\+30"),
        (np.eye(4), {"xy": float("nan")}, "xy=nan must be a number >= 0"),
        (np.eye(4), {"init": np.zeros((2, 3))}, "init holds 2 colours of 3 channels: 2 of 1 are"),
        (np.eye(4), {"init": np.zeros(2, np.uint8)}, "init holds uint8 and the picture float64"),
        (
            np.eye(4),
            {"init": np.zeros(2), "xy": 1.0},
            "init holds colours without places, and xy=1.0 needs",
        ),
        (np.eye(4), {"max_iter": 0}, "max_iter=0 must be an integer >= 1"),
    ],
)
def test_bad_input(pixels, options, message):
    with pytest.raises(ValueError, match=message):
        segment(pixels, **{"k": 2, **options})


@pytest.mark.parametrize("opacity", [255, 128, 1, 0])
def test_a_constant_alpha_changes_nothing(photo, opacity):
    plain = segment(photo, 6)
    found = segment(np.dstack([photo, np.full(photo.shape[:2], opacity, np.uint8)]), 6)
    assert found.labels.tobytes() == plain.labels.tobytes()
    assert found.centers.tobytes() == plain.centers.tobytes()
    assert found.n_iter == plain.n_iter


@pytest.mark.parametrize("init", ["k-means++", "random", "farthest", "k-means||"])
def test_hidden_colours_move_nothing(photo, init):
    shown = (np.arange(photo[..., 0].size).reshape(photo.shape[:2]) % 3 > 0).astype(np.uint8)
    other = np.where(shown[..., np.newaxis], photo, 255 - photo // 2)
    one, two = (segment(np.dstack([x, shown]), 5, init=init) for x in (photo, other))
    assert one.centers.tobytes() == two.centers.tobytes()
    assert (one.palette == two.palette).all()
    assert (one.labels == two.labels)[shown > 0].all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_equal_floating_pixels_are_one_colour(dtype, channels):
    colors = (np.arange(1, 4 * channels + 1).reshape(4, channels) / 16).astype(dtype)
    pixels = colors[np.arange(900).reshape(30, 30) % 4]
    with pytest.warns(UserWarning, match=r"fewer colours \(4\) than k=9"):
        found = segment(pixels, 9)
    assert found.n_colors == len(found.palette) == 4
    np.testing.assert_array_equal(found.image, pixels)


def test_floats_are_clustered_as_the_levels_they_stand_for(photo):
    floats, levels = segment(photo / 255, 7), segment(photo, 7)
    assert floats.labels.tobytes() == levels.labels.tobytes()
    assert floats.n_colors == levels.n_colors


@pytest.mark.parametrize("alpha", [math.nan, -0.1, 255.0])
def test_a_floating_alpha_is_from_0_to_1(alpha):
    pixels = np.full((2, 3, 4), 0.5)
    pixels[0, 0, 3] = alpha
    with pytest.raises(ValueError, match=r"alphas (hold NaN|reach from)"):
        segment(pixels, 1)
