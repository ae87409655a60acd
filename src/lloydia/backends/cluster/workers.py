"""The workers of a Dask cluster: whether there are any, and how their answers are waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lloydia import __version__
from lloydia.imports import load

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["PATIENCE", "current_client", "gathered", "settled"]

# Evaluated elsewhere: None where Lloydia is not installed.
VERSION = (
    "__import__('lloydia').__version__ "
    "if __import__('importlib.util').util.find_spec('lloydia') else None"
)

# Seconds that a cluster may be without any worker.
PATIENCE = 30.0


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
            "The Dask client is asynchronous, and a fit waits for its workers: use "
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
            f"The Dask {who} has {has} and this process {__version__}: install the same version "
            "everywhere, since another one may give other bits."
        )


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
        "start some (cluster.scale(2), or `dask worker ADDRESS`), and look into the logs of those "
        "that left."
    )
