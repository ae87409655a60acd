"""Options of `lloydia fit` that keep where it stands, and go on from there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from lloydia.cli.options import FILE, POSITIVE
from lloydia.spelling import OPTIONS

if TYPE_CHECKING:
    from lloydia.estimators.kmeans import KMeans

CHECKPOINTS = Group("Checkpoints", sort_key=4)


@Parameter(name="*", group=CHECKPOINTS)
@dataclass(frozen=True)
class Checkpoints:
    """What a fit that may be killed leaves behind."""

    checkpoint: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="Save the state of the fit in this file: .npz. If it exists, give --resume to "
            "continue from it, or delete it to start again."
        ),
    ] = None
    every: Annotated[
        int | None,
        POSITIVE,
        Parameter(help="Iterations between two checkpoints; by default one is saved each minute."),
    ] = None
    resume: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Continue from the checkpoint, if it exists, with the same result as an unbroken "
            "fit; you may raise --max-iter.",
        ),
    ] = False

    def check(self, used: list[Path], force: bool) -> None:
        """Refuse what could not be written, before any work is done.

        Raises
        ------
        ValueError
            The file cannot be written, or holds what another fit has come to, or another option
            makes no sense without it.
        ImportError
            This scikit-learn has no callbacks.
        """
        if self.checkpoint is None:
            for name in ("every", "resume"):
                if getattr(self, name):
                    raise ValueError(
                        f"--{name} needs a checkpoint: add --checkpoint FILE, or leave it out."
                    )
            return
        from lloydia.callbacks import CallbackSupportMixin
        from lloydia.data.outputs import check_output, kind_of

        check_output(self.checkpoint, (".npz",), others=used)
        if self.checkpoint.exists() and not self.resume:
            # --force may be there for another output: it never discards the work of a fit.
            if kind_of(self.checkpoint) == "checkpoint":
                raise ValueError(
                    f"--checkpoint {self.checkpoint} exists: add --resume to continue from it, "
                    "delete it to start again, or name another file."
                )
            if not force:
                raise ValueError(
                    f"--checkpoint {self.checkpoint} exists, and is not a checkpoint: name another "
                    "file, or add --force to replace it."
                )
        if not hasattr(CallbackSupportMixin, "set_callbacks"):
            raise ImportError("--checkpoint needs scikit-learn 1.9 or newer.")

    def prepared(self, estimator: KMeans) -> KMeans:
        """Return the estimator with its checkpoint, or one that goes on from there."""
        if self.checkpoint is None:
            return estimator
        from lloydia.callbacks import Checkpoint

        if self.resume and self.checkpoint.exists():
            estimator = type(estimator).resume(self.checkpoint).set_params(**estimator.get_params())
            print(f"lloydia: the fit continues from {self.checkpoint}.", file=sys.stderr)
        elif self.resume:
            print(
                f"lloydia: {self.checkpoint} does not exist yet: the fit starts from the "
                "beginning.",
                file=sys.stderr,
            )
        return estimator.set_callbacks(Checkpoint(self.checkpoint, every=self.every))

    @contextmanager
    def spelled(self) -> Iterator[None]:
        """Have a fit from within that is refused to go on name options, not parameters.

        Raises
        ------
        ValueError
            As within.
        """
        from lloydia.loop.resuming import OtherParameterError

        try:
            yield
        except OtherParameterError as error:
            given, before = (_option(error.name, x) for x in (error.value, error.before))
            before = "another file" if before == given else before
            raise ValueError(
                f"{given} differs from the fit in {self.checkpoint} ({before}): a resumed fit may "
                "change only --algorithm, --device and --threads, and raise --max-iter."
            ) from None

    def path(self) -> str | None:
        """Return the file's name."""
        return None if self.checkpoint is None else str(self.checkpoint)


def _option(name: str, value: Any) -> str:
    """Return how a command says what a checkpoint holds of a parameter."""
    option = OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if value is None:
        return f"no {option}"
    return f"{option} FILE" if str(value).startswith("array ") else f"{option} {value}"
