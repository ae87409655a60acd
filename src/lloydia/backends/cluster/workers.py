"""The workers of a Dask cluster: whether there are any, what they are given, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lloydia.imports import load
from lloydia.version import __version__

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = [
    "PATIENCE",
    "current_client",
    "gathered",
    "mapped",
    "places_of",
    "sent",
    "settled",
]

# Evaluated elsewhere: None where Lloydia is not installed.
VERSION = (
    "__import__('lloydia').__version__ "
    "if __import__('importlib.util').util.find_spec('lloydia') else None"
)

# Seconds that a cluster may be without any worker.
PATIENCE = 30.0

# Bytes that go out with every task; what is larger goes out once, as a result of its own.  Dask
# sees to that from 100 kB on, but under the parameter's name, which other calls have, too.
SMALL = 50_000


def current_client() -> Client:
    """Return the current client once its workers can compute what this process asks of them.

    Raises
    ------
    RuntimeError
        There is no worker, or one has another version of Lloydia, or the scheduler has.
    """
    client = load("distributed").Client.current()
    if client.asynchronous:
        raise RuntimeError(
            "The Dask client is asynchronous, and Lloydia needs a synchronous one: use "
            "Client(asynchronous=False)."
        )
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise _no_workers(client) from None
    for address, version in client.run(eval, VERSION).items():
        _refuse_other(f"worker {address}", version)
    _refuse_other("scheduler", client.run_on_scheduler(eval, VERSION))
    return client


def _refuse_other(who: str, version: str | None) -> None:
    if version != __version__:
        has = f"Lloydia {version}" if version else "no Lloydia"
        raise RuntimeError(
            f"The Dask {who} has {has}, and this process has Lloydia {__version__}: install the "
            "same version everywhere, because results may differ between versions."
        )


def mapped(
    client: Client,
    places: Sequence[Sequence[str]],
    task: Callable,
    *lists: Sequence,
    **common: Any,
) -> list[Future]:
    """Have a task done with each element of lists, at a worker of these; elsewhere if it is gone.

    Dask by itself moves what tasks are done with, rows and all, as soon as a worker has been busy.
    """
    name = f"{task.__name__}-{uuid4().hex}"
    where = {f"{name}-{i}": list(place) for i, place in enumerate(places)}
    with load("dask").annotate(workers=where.__getitem__, allow_other_workers=True):
        return client.map(task, *lists, **common, key=list(where))


def places_of(client: Client, futures: Sequence[Future]) -> list[Sequence[str]]:
    """Return the workers that have each of some results."""
    found = client.who_has(futures)
    return [found.get(future.key, ()) for future in futures]


def sent(client: Client, value: Any) -> Any:
    """Return what all tasks of a kind are given as this value."""
    # Of a list it is an estimate from some elements, which Dask's own need not agree with.
    if not isinstance(value, list) and load("dask.sizeof").sizeof(value) <= SMALL:
        return value
    return client.submit(itself, value, pure=False)


def itself(value: Any) -> Any:
    """Return the value: it comes with the task, and its result is there for other tasks."""
    return value


def settled(client: Client, futures: Sequence[Future]) -> None:
    """Wait until tasks have ended, well or not.

    Raises
    ------
    RuntimeError
        For a while there has been no worker that could run them.
    """
    wait = load("distributed").wait
    while True:
        try:
            with client.as_current():
                wait(futures, timeout=PATIENCE)
            return
        except TimeoutError:
            if not client.nthreads():
                raise _no_workers(client) from None


def gathered(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Wait for results and bring them here.

    Raises
    ------
    RuntimeError
        As :func:`settled`.
    Exception
        What a task raised.
    """
    settled(client, futures)
    return client.gather(futures)


def _no_workers(client: Client) -> RuntimeError:
    return RuntimeError(
        f"The Dask scheduler {client.scheduler.address} has had no worker for {PATIENCE:g} s: "
        "start workers (cluster.scale(2), or `dask worker ADDRESS`), and read the logs of workers "
        "that stopped."
    )
