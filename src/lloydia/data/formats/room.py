"""Checks that a file's declared size fits into the free memory, before it is read."""

from __future__ import annotations

from lloydia.data.columns import DataError

__all__ = ["Watch", "check_room", "free"]

# Bytes between two checks of the free memory; one part in RESERVE of it must remain free.
STEP, RESERVE = 64_000_000, 16


def free() -> int | None:
    """Return the bytes of memory that are free for this process; None if that is unknown."""
    from lloydia.data.chunks.memory import available

    try:
        return available()
    except (ValueError, OSError):
        return None


def check_room(needed: int, where: str, remedy: str) -> None:
    """Raise an error if more memory is needed than is free.

    Parameters
    ----------
    needed : int
        The number of bytes.
    where : str
        The name of the file in the error.
    remedy : str
        The advice in the error.

    Raises
    ------
    DataError
        If less memory is free.
    """
    from lloydia.data.chunks.memory import spell

    there = free()
    if there is not None and needed > there:
        raise DataError(
            f"{where} needs {spell(needed)} of memory, and {spell(there)} is free: {remedy}."
        )


class Watch:
    """A watch on the free memory while data of unknown length are read.

    Parameters
    ----------
    where : str
        The name of the file in the error.
    """

    def __init__(self, where: str) -> None:
        self.where, self.read, self.next = where, 0, STEP
        self.least = (free() or 0) // RESERVE

    def count(self, n_bytes: int) -> None:
        """Count bytes that were read.

        Raises
        ------
        DataError
            If hardly any memory is left.
        """
        from lloydia.data.chunks.memory import spell

        self.read += n_bytes
        if self.read < self.next:
            return
        self.next = self.read + STEP
        there = free()
        if there is not None and there < self.least:
            raise DataError(
                f"{self.where} does not fit into memory: {spell(self.read)} of text were read, and "
                f"{spell(there)} is left; make a .npy or .parquet file of it, which is read by "
                "blocks."
            )
