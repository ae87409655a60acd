"""One library in a process of its own: it fits when it is told to, and says how long that took.

    python -m lloydia.bench.worker MODULE

MODULE has ``PEERS``.  A request is a JSON object on a line of standard input, a reply one on a line
of standard output.  :class:`Worker` is the other end; it ends a process that takes too long.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lloydia.bench.peers import Fitted, Peer, Task

__all__ = ["Data", "Failed", "TooSlow", "Worker"]

LEAST = 3  # fits in one turn, unless they are long
COUNTS_OF_THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    "VECLIB_MAXIMUM_THREADS",
)


class Failed(Exception):
    """The peer raised an error or its process ended."""


class TooSlow(Exception):
    """The peer took longer than it was given, and its process was ended."""


@dataclass(frozen=True)
class Data:
    """Where a case's rows are, for all workers."""

    X: str
    start: str | None
    k: int


class Worker:
    """A library's process, started when it is first asked and again after it has ended."""

    def __init__(self, module: str, threads: int) -> None:
        self.module = module
        self.threads = threads
        self.process: subprocess.Popen[str] | None = None
        self.holds: Data | None = None
        self.errors: IO[bytes] | None = None

    def fit(
        self,
        peer: Peer,
        data: Data,
        *,
        iterations: int,
        tol: float,
        seconds: float = 0.0,
        keep: Path | None = None,
        trace: bool = False,
        limit: float = 600.0,
    ) -> dict[str, Any]:
        """Fit again and again for at least `seconds`; the reply has the median time of a fit.

        Parameters
        ----------
        peer : Peer
        data : Data
        iterations, tol
            As in :class:`~lloydia.bench.peers.Task`.
        seconds : float
            0: one fit.
        keep : Path or None
            Where to write what was found, an ``.npz`` file.
        trace : bool
            Whether to trace the memory that Python allocates, which makes the fit slower.
        limit : float
            Seconds after which the process is ended.

        Raises
        ------
        Failed
        TooSlow
        """
        if self.holds != data:
            self.ask({"load": vars(data)}, limit=600.0)
            self.holds = data
        return self.ask(
            {
                "fit": peer.name,
                "task": {"iterations": iterations, "tol": tol, "threads": self.threads},
                "seconds": seconds,
                "keep": str(keep) if keep else None,
                "trace": trace,
            },
            limit,
        )

    def ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """Send a request and wait for its reply."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(limit, end)
        timer.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            why = self._last_words()
            self.close()
            if late.is_set():
                raise TooSlow(f"over {limit:.0f} s")
            raise Failed(f"its process ended: {why}")
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        if self.errors is not None:
            self.errors.close()
        self.process = self.holds = self.errors = None

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None:
            counts = dict.fromkeys(COUNTS_OF_THREADS, str(self.threads))
            self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
            self.process = subprocess.Popen(
                [sys.executable, "-m", "lloydia.bench.worker", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                text=True,
                env={**os.environ, **counts},
            )
        return self.process

    def _last_words(self) -> str:
        assert self.errors is not None
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "without a word"


# -- the process itself ----------------------------------------------------------------------


class Shift:
    """What a worker's process holds: the peers of a library, and a case's rows."""

    def __init__(self, peers: list[Peer]) -> None:
        self.peers = {peer.name: peer for peer in peers}

    def load(self, X: str, start: str | None, k: int) -> dict[str, Any]:
        """Read a case."""
        rows = np.load(X)
        self.given = rows.dtype.name
        self.X = {self.given: rows}
        self.start = np.load(start) if start else None
        self.k = k
        return {}

    def fit(
        self, name: str, task: dict[str, Any], seconds: float, keep: str | None, trace: bool
    ) -> dict[str, Any]:
        """Fit for a turn; the first of several fits is slower and not counted."""
        peer = self.peers[name]
        dtype = peer.dtype(self.given)
        if dtype not in self.X:
            self.X[dtype] = self.X[self.given].astype(dtype)
        X = self.X[dtype]
        X.flags.writeable = False

        def given() -> Task:
            # A copy: mlpack writes its final centres over the start.
            start = None if self.start is None else self.start.astype(dtype)
            return Task(self.k, start, **task)

        walls: list[float] = []
        cores: list[float] = []
        memory = None
        if trace:
            memory = traced(peer, X, given())
        while goes_on(walls, seconds):
            asked = given()
            wall, cpu = time.perf_counter(), time.process_time()
            fitted = peer.fit(X, asked)
            walls.append(time.perf_counter() - wall)
            cores.append((time.process_time() - cpu) / walls[-1])
        if keep:
            save(keep, fitted)
        counted = slice(1 if len(walls) > 1 else 0, None)
        return {
            "seconds": median(walls[counted]),
            "cores": median(cores[counted]),
            "n_iter": int(fitted.n_iter),
            "objective": fitted.objective,
            "counts": fitted.counts,
            "memory": memory,
        }


def goes_on(walls: list[float], seconds: float) -> bool:
    """Return whether a turn goes on: short fits are repeated, so that the first can be left out."""
    spent = sum(walls)
    if not walls:
        return True
    return spent < seconds or (len(walls) < LEAST and spent < 10 * seconds)


def traced(peer: Peer, X: NDArray, task: Task) -> int:
    """Return the largest number of bytes that a fit has allocated at any time."""
    import tracemalloc

    tracemalloc.start()
    try:
        peer.fit(X, task)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def save(path: str, fitted: Fitted) -> None:
    """Write what was found, under the names of the estimator."""
    found: dict[str, Any] = {
        "cluster_centers_": fitted.centers,
        "labels_": fitted.labels,
        "inertia_": fitted.inertia,
        "n_iter_": fitted.n_iter,
    }
    np.savez(path, **{name: value for name, value in found.items() if value is not None})


def main(module: str) -> None:
    """Answer requests until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print to standard output
    shift = Shift(import_module(module).PEERS)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                reply = shift.load(**request["load"])
            else:
                reply = shift.fit(request.pop("fit"), **request)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main(sys.argv[1])
