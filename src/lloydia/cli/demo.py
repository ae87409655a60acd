"""`lloydia demo`: a photograph and two tables, clustered, drawn and timed against scikit-learn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from lloydia.cli.options import OUTPUT, Force, Json
from lloydia.cli.progress import progress
from lloydia.cli.report import print_json

REPEATS = 5
SAMPLE = 10_000  # pixels that the silhouette of the photograph is computed from
NOTICED = 0.2  # seconds by which a first call must be slower to be called a compilation


@dataclass(frozen=True)
class Case:
    """One data set of the demo: a name, X of shape (n, d), k, and what draws the result."""

    name: str
    X: Any
    k: int
    draw: Callable[[Any, Path], None]


@dataclass(frozen=True)
class Outcome:
    """One row of the demo's table."""

    data: str
    n: int
    d: int
    k: int
    iterations: int
    inertia: float
    silhouette: float
    silhouette_sample: int | None
    seconds: float
    sklearn_inertia: float
    sklearn_seconds: float
    compile_seconds: float
    picture: str


def demo(
    *,
    out: Annotated[Path, Parameter(group=OUTPUT, help="Folder for the pictures.")] = Path("demo"),
    force: Force = False,
    json: Json = False,
) -> None:
    """Cluster a photograph and two tables, and compare with scikit-learn from the same start.

    Needs matplotlib: pip install matplotlib.

    Example: lloydia demo --out pictures
    """
    import lloydia.plots  # noqa: F401 - says now, not after the work, that it is missing
    from lloydia.data.outputs import check_output

    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} exists and is not a folder: name a folder for the pictures.")
    out.mkdir(parents=True, exist_ok=True)
    for name in ("china", "digits", "wine"):
        check_output(out / f"{name}.png", (".png",), force=force)
    outcomes = []
    with progress("loading", json=json, timed=True) as shown:
        for case in _cases():
            outcomes.append(_run(case, out / f"{case.name}.png", force, shown.say))
    if json:
        print_json({"cases": [asdict(outcome) for outcome in outcomes]})
    else:
        _print_table(outcomes)


def _cases() -> Iterator[Case]:
    import numpy as np
    from sklearn.datasets import load_digits, load_sample_image, load_wine
    from sklearn.preprocessing import StandardScaler

    from lloydia.cli.images.photo import side_by_side
    from lloydia.data.outputs import write_encoded
    from lloydia.images.color import space
    from lloydia.plots import clusters, save

    photo = load_sample_image("china.jpg")
    pixels = photo.reshape(-1, 3)

    def draw_photo(fitted: Any, to: Path) -> None:
        counts = np.bincount(fitted.labels_)
        sums = [np.bincount(fitted.labels_, channel) for channel in pixels.T]
        colors = np.column_stack(sums) / counts[:, np.newaxis]
        n_colors = len(np.unique(pixels, axis=0))
        picture = side_by_side(photo, fitted.labels_, colors, n_colors=n_colors)
        write_encoded(to, lambda stream: picture.save(stream, "PNG", optimize=True))

    def draw_plane(X: Any, title: str) -> Callable[[Any, Path], None]:
        def draw(fitted: Any, to: Path) -> None:
            save(clusters(X, fitted.labels_, fitted.cluster_centers_, title=title), to)

        return draw

    # In Lab the red columns and the green trees keep colours of their own.
    yield Case("china", space("Lab").points(pixels), 12, draw_photo)
    digits = load_digits().data
    yield Case("digits", digits, 10, draw_plane(digits, "Handwritten digits in 10 clusters"))
    wine = StandardScaler().fit_transform(load_wine().data)
    yield Case("wine", wine, 3, draw_plane(wine, "Wines, standardised, in 3 clusters"))


def _run(case: Case, picture: Path, force: bool, step: Callable[[str], None]) -> Outcome:
    from sklearn.cluster import KMeans as Theirs

    from lloydia import KMeans, kmeans_plusplus
    from lloydia.data.outputs import Renames, writing
    from lloydia.metrics import silhouette_score

    X, k = case.X, case.k
    step(f"{case.name}: first call")
    start = kmeans_plusplus(X, k, random_state=0)[0]
    first, second = (
        _timed(KMeans(k, init=start, n_init=1, max_iter=2).fit, X)[0] for _ in range(2)
    )
    Theirs(k, init=start, n_init=1, max_iter=2).fit(X)
    ours, theirs = [], []
    for i in range(REPEATS):
        step(f"{case.name}: fit {i + 1} of {REPEATS}")
        ours.append(_timed(KMeans(k, init=start, n_init=1).fit, X))
        theirs.append(_timed(Theirs(k, init=start, n_init=1).fit, X))
    fitted, other = ours[-1][1], theirs[-1][1]
    step(f"{case.name}: silhouette")
    sample = SAMPLE if len(X) > SAMPLE else None
    silhouette = silhouette_score(X, fitted.labels_, sample_size=sample, random_state=0)
    step(f"{case.name}: picture")
    with Renames(force=force) as renames, writing(picture, renames) as to:
        case.draw(fitted, to)
    return Outcome(
        data=case.name,
        n=X.shape[0],
        d=X.shape[1],
        k=k,
        iterations=int(fitted.n_iter_),
        inertia=float(fitted.inertia_),
        silhouette=float(silhouette),
        silhouette_sample=sample,
        seconds=statistics.median(seconds for seconds, _ in ours),
        sklearn_inertia=float(other.inertia_),
        sklearn_seconds=statistics.median(seconds for seconds, _ in theirs),
        compile_seconds=first - second if first - second > NOTICED else 0.0,
        picture=str(picture),
    )


def _timed(function: Callable[[Any], Any], X: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function(X)
    return time.perf_counter() - start, result


def _print_table(outcomes: list[Outcome]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=0)  # fits 80 columns
    table.add_column("\n\ndata")
    for title in ("n", "d", "k", "iter", "inertia", "silhouette", "seconds"):
        lines = "\n" * (2 - title.count("\n"))
        table.add_column(lines + title, justify="right")
    for title in ("inertia", "seconds"):
        table.add_column(f"scikit-\nlearn's\n{title}", justify="right")
    for row in outcomes:
        table.add_row(
            *(row.data, f"{row.n:,}", str(row.d), str(row.k), str(row.iterations)),
            *(_short(row.inertia), f"{row.silhouette:.3f}", f"{row.seconds:.4f}"),
            *(_short(row.sklearn_inertia), f"{row.sklearn_seconds:.4f}"),
        )
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(table)
    for note in _notes(outcomes):
        console.print(note, soft_wrap=True)


def _short(inertia: float) -> str:
    return f"{inertia:.1f}" if inertia < 1e7 else f"{inertia:.0f}"


def _notes(outcomes: list[Outcome]) -> Iterator[str]:
    yield (
        f"seconds: median of {REPEATS} fits from one k-means++ start, the same for scikit-learn; "
        "seeding is not counted."
    )
    for row in outcomes:
        if row.silhouette_sample:
            yield f"silhouette of {row.data}: of {row.silhouette_sample:,} rows drawn at random."
    if compiled := sum(row.compile_seconds for row in outcomes):
        yield f"compiling took {compiled:.1f} s, once on this machine, and is not counted."
    yield "pictures: " + ", ".join(row.picture for row in outcomes)
