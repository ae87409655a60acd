"""Whether what a file declares fits into the memory that is free, asked before it is read."""

from __future__ import annotations

from lloydia.data.columns import DataError

__all__ = ["Watch", "check_room", "free"]

# Bytes between two looks at the memory that is free, and the part of it that stays free.
STEP, RESERVE = 64_000_000, 16


def free() -> int | None:
    """Return the bytes of memory that are free for this process; None where nothing says so."""
    from lloydia.data.chunks.memory import available

    try:
        return available()
    except (ValueError, OSError):
        return None


def check_room(needed: int, where: str, remedy: str) -> None:
    """Refuse what needs more memory than is free.

    Parameters
    ----------
    needed : int
        Bytes.
    where : str
        What the error calls the file.
    remedy : str
        What to do.

    Raises
    ------
    DataError
        There is less.
    """
    from lloydia.data.chunks.memory import spell

    there = free()
    if there is not None and needed > there:
        raise DataError(
            f"{where} needs {spell(needed)} of memory, and {spell(there)} is free: {remedy}."
        )


class Watch:
    """Watch the free memory while something of unknown length is read.

    Parameters
    ----------
    where : str
        What the error calls the file.
    """

    def __init__(self, where: str) -> None:
        self.where, self.read, self.next = where, 0, STEP
        self.least = (free() or 0) // RESERVE

    def count(self, n_bytes: int) -> None:
        """Count bytes that were read.

        Raises
        ------
        DataError
            Hardly any memory is left.
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
