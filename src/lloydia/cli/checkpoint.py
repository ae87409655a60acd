"""Options of `lloydia fit` that keep where it stands, and go on from there."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from lloydia.cli.options import FILE, POSITIVE

if TYPE_CHECKING:
    from lloydia.kmeans import KMeans

CHECKPOINTS = Group("Checkpoints", sort_key=4)


@Parameter(name="*", group=CHECKPOINTS)
@dataclass(frozen=True)
class Checkpoints:
    """What a fit that may be killed leaves behind."""

    checkpoint: Annotated[
        Path | None, FILE, Parameter(help="Keep where the fit stands in this file: .npz.")
    ] = None
    every: Annotated[
        int | None,
        POSITIVE,
        Parameter(help="Iterations between two checkpoints; by default a minute passes."),
    ] = None
    resume: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Go on from the checkpoint, if it is there, to the bits of a fit without a break; "
            "--max-iter may be larger than it was.",
        ),
    ] = False

    def check(self, used: list[Path]) -> None:
        """Refuse what could not be written, before any work is done.

        Raises
        ------
        ValueError
            The file cannot be written, or another option makes no sense without it.
        ImportError
            This scikit-learn has no callbacks.
        """
        if self.checkpoint is None:
            for name in ("every", "resume"):
                if getattr(self, name):
                    raise ValueError(f"--{name} says how to use a --checkpoint FILE; name one.")
            return
        from lloydia.callbacks import CallbackSupportMixin
        from lloydia.data.outputs import check_output

        check_output(self.checkpoint, (".npz",), others=used)
        if not hasattr(CallbackSupportMixin, "set_callbacks"):
            raise ImportError("--checkpoint needs scikit-learn 1.9 or newer.")

    def prepared(self, estimator: KMeans) -> KMeans:
        """Return the estimator with its checkpoint, or one that goes on from there."""
        if self.checkpoint is None:
            return estimator
        from lloydia.callbacks import Checkpoint

        if self.resume and self.checkpoint.exists():
            estimator = type(estimator).resume(self.checkpoint).set_params(**estimator.get_params())
        elif self.resume:
            warnings.warn(f"{self.checkpoint} is not there: the fit begins anew.", stacklevel=2)
        return estimator.set_callbacks(Checkpoint(self.checkpoint, every=self.every))

    def path(self) -> str | None:
        """Return the file's name."""
        return None if self.checkpoint is None else str(self.checkpoint)
