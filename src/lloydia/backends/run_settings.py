"""What a run is begun with: one object, which every engine and every part gets."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

__all__ = ["UNLIMITED", "RunSettings", "Starts"]

# Iterations that no run needs.
UNLIMITED = 1 << 30


class RunSettings(NamedTuple):
    """What a run is begun with.

    An option of runs is one more attribute here, with the value of runs without it.  An engine that
    cannot do it raises an error in `start_run`.

    Attributes
    ----------
    centers : array of shape (k, d)
        The labels and bounds of the run before are forgotten.
    algorithm : str
    empty_stops : bool
        Whether a run stops at an iteration with empty clusters, which the loop then fills; if not,
        iterations go on.
    max_iter : int
        The run ends after so many iterations at the latest: what takes longer to pay is not begun,
        and what follows the last may be queued with it.
    """

    centers: Any
    algorithm: str
    empty_stops: bool = True
    max_iter: int = UNLIMITED


class Starts(Protocol):
    """What begins runs."""

    def start(self, centers: Any, algorithm: str, **options: Any) -> None:
        """Begin a run; the parameters are the attributes of :class:`RunSettings`."""
        self.start_run(RunSettings(centers, algorithm, **options))

    def start_run(self, settings: RunSettings) -> None:
        """Begin a run; what :meth:`labels` and :meth:`centers` returned stays as it is."""
