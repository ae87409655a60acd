"""`lloydia ladder run` on data of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from lloydia.cli.options import POSITIVE, SEED
from lloydia.cli.reading import Reading

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lloydia.ladder.experiments.lab import Lab
    from lloydia.ladder.experiments.measurement import Measurement

OWN = Group("Data of your own", sort_key=1)


@Parameter(name="*", group=OWN)
@dataclass(frozen=True)
class Own:
    """What to run rungs on in place of the experiment's own data."""

    data: Annotated[
        str | None,
        Parameter(
            help="A table of points to use instead of the experiment's: one point a row, or all "
            "as x y x y in one row. The rungs start and stop as the document's programs do."
        ),
    ] = None
    points: Annotated[
        int | None,
        POSITIVE,
        Parameter(
            help="Use this many points, uniform in the unit square, instead of --data (C's n)."
        ),
    ] = None
    clusters: Annotated[
        int | None,
        POSITIVE,
        Parameter(("--clusters", "-k", "--k"), help="Number of clusters (C's k)."),
    ] = None
    rung: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            help="Rung to run, by number or name, on the CPU or the GPU; give it again for more. "
            "By default all rungs of the document that --where allows.",
        ),
    ] = ()
    iterations: Annotated[
        int | None,
        POSITIVE,
        Parameter(help="Largest number of iterations; by default that of the document's programs."),
    ] = None
    seed: Annotated[int, SEED, Parameter(help="The same seed draws the same start.")] = 0

    @property
    def given(self) -> bool:
        """Whether there is data; refuse what makes no sense without."""
        if self.data is None and self.points is None:
            unused = {
                "-k": self.clusters,
                "--rung": self.rung,
                "--iterations": self.iterations,
                "--seed": self.seed,
            }
            for option, value in unused.items():
                if value:
                    raise ValueError(
                        f"{option} is for data of your own: give --data FILE or --points N too."
                    )
            return False
        if self.data is not None and self.points is not None:
            raise ValueError("--data and --points both give points: name one of them.")
        if self.clusters is None:
            raise ValueError("data of your own needs the number of clusters: give -k.")
        return True

    def names(self) -> list[str]:
        """Return the names of the rungs."""
        from lloydia.ladder import called

        return [called(each) for each in self.rung]

    def measure(
        self, name: str, lab: Lab, reading: Reading, rungs: list[str]
    ) -> Iterator[Measurement]:
        """Run rungs of an experiment on the data."""
        from lloydia.ladder.own_data import measure

        X, what = self._read(reading)
        assert self.clusters is not None  # since `given`
        if self.clusters > len(X):
            raise ValueError(
                f"-k {self.clusters} asks for more clusters than the {len(X)} points of {what}."
            )
        yield from measure(
            lab, name, X, self.clusters, rungs=rungs, max_iter=self.iterations, seed=self.seed
        )

    def _read(self, reading: Reading) -> tuple[NDArray, str]:
        from lloydia.ladder.experiments.uniform import square
        from lloydia.ladder.own_data import points_of

        if self.data is None:
            assert self.points is not None
            return square(self.points, on_gpu=False), "the unit square"
        return points_of(reading.table(self.data).X), self.data
