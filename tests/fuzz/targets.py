"""What a fuzzer feeds with bytes: each reader of files, and what must hold whatever the bytes are.

A target writes the bytes to a file and reads it as a user would.  It passes if the reader gives a
sound result, or raises the one exception that the command line prints as a sentence.  Anything
else, another exception or a sentence that nobody could print, is a finding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from lloydia.data.checkpoints import load_snapshot
from lloydia.data.chunks import chunks
from lloydia.data.columns import DataError
from lloydia.data.files import read_table
from lloydia.data.labels import read_labels
from lloydia.data.models import load
from lloydia.estimators.kmeans import KMeans
from lloydia.images import quantize
from lloydia.images.formats.files import read as read_picture
from lloydia.images.formats.indexed import read_animation
from lloydia.spelling import printable

__all__ = ["TARGETS", "Target"]

SEEDS = Path(__file__).parent / "seeds"

# A picture or a table of more values is read, but not clustered: a fuzzer wants many tries.
FEW = 4096

ROWS = np.array([[0.0, 0], [0, 1], [1, 0], [4, 4], [4, 5], [5, 4]])


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes
    ----------
    name : str
        Its first word is the folder of its seeds.
    suffix : str
        Extension of the file that is read.
    check : callable
        Gets the path of the file; raises AssertionError where the result is unsound.
    """

    name: str
    suffix: str
    check: Callable[[Path], None]

    @property
    def seeds(self) -> Path:
        """The folder of its seeds."""
        return SEEDS / self.name.split("-")[0]

    def __call__(self, data: bytes, folder: Path) -> bool:
        """Read a file of these bytes in a folder; return whether they were accepted."""
        path = folder / f"fuzzed{self.suffix}"
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.check(path)
            except DataError as error:
                check_sentence(printable(str(error)), path)
                return False
        return True


def check_sentence(text: str, path: Path) -> None:
    """Assert that an error, as the command line prints it in one line, names the file."""
    assert path.name in text, f"the error does not name the file: {text!r}"
    assert len(text) < 600 + len(str(path)), f"the error is too long: {text!r}"


def check_table(path: Path) -> None:
    """Read a table; its numbers must be finite, and there must be a column for each feature."""
    table = read_table(path)
    X = table.X
    assert X.ndim == 2
    assert X.size > 0
    assert X.dtype in (np.float32, np.float64)
    assert X.flags.c_contiguous
    assert np.isfinite(X).all()
    assert len(table.columns.places) == X.shape[1]
    assert table.names is None or len(table.names) == X.shape[1]


def check_pairs(path: Path) -> None:
    """Read a stream of numbers as x y."""
    X = read_table(path, pairs=True).X
    assert X.shape[1] == 2
    assert np.isfinite(X).all()


def check_labels(path: Path) -> None:
    """Read labels of six rows."""
    assert read_labels(path, len(ROWS)).shape == (len(ROWS),)


def check_model(path: Path) -> None:
    """Read a model and let it predict."""
    model = load(path).set_params(device="cpu", n_threads=1)
    centers = model.cluster_centers_
    assert np.isfinite(centers).all()
    k, d = centers.shape
    if k * d > FEW:
        return
    try:
        labels = model.predict(np.zeros((3, d), centers.dtype))
    except ValueError as error:
        if "overflow" not in str(error):
            raise
        # The centres are so large that squared distances overflow.
        return
    assert ((labels >= 0) & (labels < k)).all()


def check_checkpoint(path: Path) -> None:
    """Read a checkpoint and go on with the rows that the seeds are of, or others."""
    snapshot = load_snapshot(path)
    if snapshot.parameters["n_clusters"] > len(ROWS) or snapshot.parameters["max_iter"] > 1000:
        return
    model = KMeans.resume(path).set_params(n_threads=1, device="cpu")
    try:
        model.fit(ROWS)
    except ValueError:
        # The rows are not those of the checkpoint, or a parameter is out of its range.
        return
    assert np.array_equal(model.labels_, model.predict(ROWS))


def check_picture(path: Path) -> None:
    """Read a picture and reduce a small one to four colours."""
    picture = read_picture(path)
    height, width, channels = picture.pixels.shape
    assert channels in (1, 3)
    assert picture.pixels.dtype in (np.uint8, np.uint16)
    assert picture.alpha is None or picture.alpha.shape == (height, width)
    if picture.pixels.size <= FEW:
        quantize(picture.pixels, 4, n_threads=1)


def check_animation(path: Path) -> None:
    """Read the frames of an animation, or find that it is a picture."""
    animation = read_animation(path)
    if animation is not None:
        assert len(animation.pixels) == len(animation.durations) > 1


def check_sparse(path: Path) -> None:
    """Read a sparse matrix, or another archive, without making it dense."""
    X = read_table(path, sparse=True).X
    if sp.issparse(X):
        assert X.has_canonical_format
        assert np.isfinite(X.data).all()
        assert X.indices.size == 0 or 0 <= X.indices.min() <= X.indices.max() < X.shape[1]
        if max(X.shape) <= FEW:
            KMeans(1, max_iter=1, n_threads=1).fit(X)


def check_blocks(path: Path) -> None:
    """Read a file by blocks: its rows are those of the whole."""
    found = np.concatenate(list(chunks(path).rows_from(0)))
    assert found.tobytes() == read_table(path).X.astype(found.dtype).tobytes()


TARGETS = {
    target.name: target
    for target in (
        Target("csv", ".csv", check_table),
        Target("tsv", ".tsv", check_table),
        Target("txt", ".txt", check_table),
        Target("pairs", ".txt", check_pairs),
        Target("labels", ".csv", check_labels),
        Target("npy", ".npy", check_table),
        Target("npz", ".npz", check_table),
        Target("npy-blocks", ".npy", check_blocks),
        Target("parquet-blocks", ".parquet", check_blocks),
        Target("parquet", ".parquet", check_table),
        Target("model", ".npz", check_model),
        Target("checkpoint", ".npz", check_checkpoint),
        Target("picture", ".png", check_picture),
        Target("animation", ".gif", check_animation),
        Target("sparse", ".npz", check_sparse),
        Target("arrow", ".arrow", check_table),
        Target("gzip", ".csv.gz", check_table),
        Target("xz", ".csv.xz", check_table),
    )
}
