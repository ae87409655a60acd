"""The workers of a Dask cluster: checks, tasks and their results."""

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
    "wait_for",
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
    """Run a task for each element of lists, on a worker of these, or elsewhere if it is gone.

    Without a place, Dask moves tasks and their rows to another worker as soon as one is busy.
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
    """Return a value, or a future of it if it is large, for all tasks of a kind."""
    # Of a list, Dask's size is an estimate from some elements.
    if not isinstance(value, list) and load("dask.sizeof").sizeof(value) <= SMALL:
        return value
    return client.submit(itself, value, pure=False)


def itself(value: Any) -> Any:
    """Return the value, so that it is the result of a task."""
    return value


def wait_for(client: Client, futures: Sequence[Future]) -> None:
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
        As :func:`wait_for`.
    Exception
        What a task raised.
    """
    wait_for(client, futures)
    return client.gather(futures)


def _no_workers(client: Client) -> RuntimeError:
    return RuntimeError(
        f"The Dask scheduler {client.scheduler.address} has had no worker for {PATIENCE:g} s: "
        "start workers (cluster.scale(2), or `dask worker ADDRESS`), and read the logs of workers "
        "that stopped."
    )
