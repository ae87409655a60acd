"""Where experiments are done: who takes part, and how each is timed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lloydia import ladder
from lloydia.backends.cpu.runtime.pool import available_threads
from lloydia.ladder.device import REFUSALS
from lloydia.ladder.experiments.documents import seconds_in
from lloydia.ladder.experiments.equality import judge, judge_few
from lloydia.ladder.experiments.measurement import Measurement, typical
from lloydia.ladder.experiments.oracle import FEW, Trial
from lloydia.ladder.rung import Outcome
from lloydia.stopping import Labels, Rule

__all__ = ["ENGINES", "PEERS", "SIMULATOR", "Contender", "Lab", "gpu"]

PEERS = ("scikit-learn lloyd", "scikit-learn elkan")
ENGINES = {"r30_engine_cpu": "Lloydia", "r31_engine_cuda": "Lloydia on the GPU"}
SIMULATOR = "CUDA simulator"
PATIENCE = 1.0  # seconds after which a run is not repeated


def gpu() -> str:
    """Return the name of the GPU that the rungs run on.

    Raises
    ------
    ImportError
        Without numba-cuda.
    ValueError
        Without a GPU.
    """
    if not find_spec("numba_cuda"):
        raise ImportError("The ladder's GPU rungs need numba-cuda; pip install numba-cuda.")
    from numba import cuda

    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        return SIMULATOR
    if not cuda.is_available():
        raise ValueError(
            "Rungs on a GPU need an NVIDIA GPU, and numba-cuda finds none here; with "
            "NUMBA_ENABLE_CUDASIM=1 they run without one, for some dozen points."
        )
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


@dataclass(frozen=True)
class Contender:
    """A rung, or a peer, with what it is run with.

    Attributes
    ----------
    name : str
        A rung's, or one of `PEERS`.
    threads, block : int or None
        Where they make a difference.
    """

    name: str
    threads: int | None = None
    block: int | None = None

    @property
    def where(self) -> Literal["cpu", "cuda"]:
        """What it runs on."""
        return "cpu" if self.name in PEERS else ladder.where(self.name)

    def fit(self, trial: Trial, rule: Rule | None, max_iter: int) -> Outcome:
        """Run it from the trial's start.

        A peer's only rule is that no label changed, and the engines have it where iterations are
        fixed: later ones change nothing.  Rungs do what their sources did.
        """
        if self.name in PEERS:
            return _scikit_learn(self.name.split()[1], trial, max_iter)
        if self.name in ENGINES and rule is None:
            rule = Labels()
        options = {"threads": self.threads, "block": self.block}
        given = {name: value for name, value in options.items() if value is not None}
        fit: Callable[..., Outcome] = ladder.named(self.name).fit
        return fit(trial.X, trial.start, rule=rule, max_iter=max_iter, **given)


def _scikit_learn(algorithm: str, trial: Trial, max_iter: int) -> Outcome:
    """Fit scikit-learn's estimator; its threads are those of the process."""
    from sklearn.cluster import KMeans

    given = {"init": trial.start, "n_init": 1, "tol": 0, "max_iter": max_iter}
    model = KMeans(len(trial.start), **given, algorithm=algorithm)
    began = time.perf_counter()
    model.fit(trial.X)
    seconds = time.perf_counter() - began
    return Outcome(model.labels_, model.cluster_centers_, model.n_iter_, seconds)


@dataclass(frozen=True)
class Lab:
    """What an experiment is run in.

    Attributes
    ----------
    where : {"cpu", "cuda", "all"}
        Which rungs take part.
    scale : float
        What sizes are multiplied by, in (0, 1].
    step : callable
        Gets what is being done, for people.
    blocks : sequence of int or None
        Block sizes to use in place of an experiment's own.
    most : int or None
        Iterations after which every run ends.
    """

    where: Literal["cpu", "cuda", "all"] = "cpu"
    scale: float = 1.0
    step: Callable[[str], None] = field(default=lambda what: None)
    blocks: Sequence[int] | None = None
    most: int | None = None

    @cached_property
    def device(self) -> str | None:
        """The GPU's name, where one takes part."""
        return None if self.where == "cpu" else gpu()

    @property
    def cpu(self) -> bool:
        """Whether rungs on the processor take part."""
        return self.where != "cuda"

    @property
    def cuda(self) -> bool:
        """Whether rungs on the GPU take part."""
        return self.where != "cpu"

    def size(self, n: int, k: int) -> tuple[int, int]:
        """Return n and k at this scale: at least 32 rows, and where n shrank 8 for each cluster."""
        if self.scale == 1:
            return n, k
        n = max(round(n * self.scale), min(n, 32))
        return n, min(k, max(2, n // 8))

    def iterations(self, most: int) -> int:
        """Return the number of iterations to allow where the source has `most`."""
        return most if self.most is None else min(most, self.most)

    def contenders(
        self,
        *,
        cpu: Sequence[str] = (),
        cuda: Sequence[str] = (),
        hosts: Sequence[str] = (),
        blocks: Sequence[int] = (256,),
        threads: Sequence[int] | None = None,
    ) -> list[Contender]:
        """Return those who take part here, each with every block size and number of threads.

        Parameters
        ----------
        cpu, cuda : sequence of str
            Rungs and peers that take part where the processor's, or the GPU's, do.
        hosts : sequence of str
            On the processor, and wanted also beside a GPU.
        blocks : sequence of int
        threads : sequence of int or None
            Of rungs; None: 2, 4, 8 and 12, as many as there are cores, and all cores.
        """
        names = [*hosts, *(cpu if self.cpu else ()), *(cuda if self.cuda else ())]
        some: list[Contender] = []
        for name in dict.fromkeys(names):
            if name in PEERS:
                some.append(Contender(name, threads=available_threads()))
                continue
            uses = ladder.named(name).ABOUT.uses
            several = [available_threads()] if name in ENGINES else threads or team_sizes()
            teams = several if "threads" in uses else (None,)
            grids = (self.blocks or blocks) if "block" in uses else (None,)
            some += [Contender(name, team, grid) for team in teams for grid in grids]
        return some

    def measure(
        self,
        trial: Trial,
        contenders: Sequence[Contender],
        *,
        repeat: int = 3,
        mean: bool = False,
        theirs: Mapping[str, float] | None = None,
    ) -> Iterator[Measurement]:
        """Compare every contender with the oracle, then time it.

        Parameters
        ----------
        trial : Trial
        contenders : sequence of Contender
        repeat : int
            Repetitions, unless they take longer than `PATIENCE`.
        mean : bool
            Whether the figure is their mean, as some sources have it, and all are done.
        theirs : mapping of str to float
            The document's own seconds by the contender's name; of those without, the entry of
            the document that corresponds is looked up.
        """
        for contender in contenders:
            self.step(f"{trial.experiment} {trial.part}: {_what(trial, contender)}")
            yield self._measured(trial, contender, repeat, mean, (theirs or {}).get(contender.name))

    def _measured(
        self, trial: Trial, contender: Contender, repeat: int, mean: bool, theirs: float | None
    ) -> Measurement:
        n, d = trial.X.shape
        told = {
            "experiment": trial.experiment,
            "part": trial.part,
            "case": trial.case,
            "rung": contender.name,
            "where": contender.where,
            "n": n,
            "d": d,
            "k": len(trial.start),
            "dtype": trial.X.dtype.name,
            "max_iter": trial.max_iter,
            "threads": contender.threads,
            "block": contender.block,
            "scale": self.scale,
            "device": self.device,
        }
        if self.scale == 1:
            told["theirs"] = theirs or seconds_in(trial.experiment, told)
        if contender.name == "r31_engine_cuda" and self.device == SIMULATOR:
            return Measurement(**told, status="skipped", reason="Triton has another simulator")
        try:
            figures, reason = _checked(trial, contender)
        except REFUSALS as error:
            return Measurement(**told, status="skipped", reason=str(error).strip().rstrip("."))
        if reason:
            return Measurement(**told, figures=figures, status="differs", reason=reason)
        runs = _repeated(trial, contender, repeat, None if mean else PATIENCE)
        seconds = tuple(run.seconds for run in runs)
        last = runs[-1]
        more, reason = trial.oracle.ending(last.centers)
        figures = {**figures, **more, **last.figures}
        if trial.whole and not reason:
            more, reason = _whole(trial, contender, last)
            figures |= more
        told |= {"n_iter": int(last.n_iter), "figures": figures}
        if reason:
            return Measurement(**told, status="differs", reason=reason)
        return Measurement(
            **told,
            seconds=typical(seconds, mean=mean),
            repetitions=seconds,
            phases=dict(last.phases),
        )


def _checked(trial: Trial, contender: Contender) -> tuple[dict[str, float], str]:
    """Compare the first few iterations; together they compile all that the timed runs use."""
    if trial.rule and trial.rule.needs_inertia:
        contender.fit(trial, trial.rule, min(FEW, trial.max_iter))
    few, peer = min(FEW, trial.max_iter), contender.name in PEERS
    if trial.whole:
        run = partial(contender.fit, trial, None)
        return judge_few(trial.oracle, run, few, ahead=peer)
    outcome = contender.fit(trial, None, few)
    return ({}, "") if peer else trial.oracle.strictly(outcome)


def _whole(trial: Trial, contender: Contender, last: Outcome) -> tuple[dict[str, float], str]:
    """Compare a whole run; one in float32 that parts from the oracle's is traced if it is short."""
    traced = trial.X.dtype == np.float64 or last.seconds <= PATIENCE
    run = partial(contender.fit, trial, None) if traced else None
    return judge(trial.oracle, last, run, ahead=contender.name in PEERS)


def _repeated(
    trial: Trial, contender: Contender, repeat: int, patience: float | None
) -> list[Outcome]:
    runs: list[Outcome] = []
    began = time.perf_counter()
    while len(runs) < repeat:
        runs.append(contender.fit(trial, trial.rule, trial.max_iter))
        if patience is not None and time.perf_counter() - began > patience:
            break
    return runs


def team_sizes() -> list[int]:
    """Return the numbers of threads that threaded rungs run with: T's 4, 8 and 12, 2, and all."""
    most = available_threads()
    return sorted({team for team in (2, 4, 8, 12) if team <= most} | {most})


def _what(trial: Trial, contender: Contender) -> str:
    n, d = trial.X.shape
    team = f", {contender.threads} threads" if contender.threads else ""
    grid = f", blocks of {contender.block}" if contender.block else ""
    problem = f"{n:,} x {d}, k = {len(trial.start)}, {trial.X.dtype.name}"
    return f"{contender.name} at {problem}{team}{grid}{', ' if trial.case else ''}{trial.case}"


def blobs(n: int, k: int, dtype: str, seed: int = 0) -> NDArray:
    """Return n points of the plane in k overlapping blobs: shape (n, 2), of deviation 1 each."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0, 4 * np.sqrt(k), size=(k, 2))
    X = rng.standard_normal((n, 2)) + centers[rng.integers(k, size=n)]
    return X.astype(dtype)
