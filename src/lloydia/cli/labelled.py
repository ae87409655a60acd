"""Files that commands write about each row: its cluster, alone or beside the columns of DATA."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lloydia.cli.options import FILE, OUTPUT, FileName
from lloydia.cli.reading import Reading

if TYPE_CHECKING:
    from lloydia.data.files import Table
    from lloydia.data.formats.stamps import Stamp
    from lloydia.data.labelled import Labels, Original
    from lloydia.data.outputs import Renames

__all__ = ["Labelled"]

# Labels that are written at a time.
SLICE = 1 << 20


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Labelled:
    """Files that say which cluster each row belongs to."""

    labels: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="File for the cluster of each row, after its id with --id: .npy, .csv, .tsv, "
            ".txt, .parquet."
        ),
    ] = None
    out: Annotated[
        Path | None,
        FILE,
        Parameter(
            help="File for the whole table with the cluster of each row as its last column, in "
            "the format of DATA: text (all else unchanged), .parquet, .arrow or .feather."
        ),
    ] = None
    cluster_name: Annotated[str, Parameter(help="Name of the column of clusters in --out.")] = (
        "cluster"
    )

    def check(self, data: FileName, reading: Reading, used: list[Path], force: bool) -> None:
        """Refuse an output that could not be written, before any work is done; add them to `used`.

        Raises
        ------
        ValueError
            It could not be written, or what is asked for has no place in it.
        """
        from lloydia.data.labelled import endings
        from lloydia.data.outputs import TABLES, check_output

        if reading.id is not None:
            endings(str(data), "--id")
            if self.labels is not None and self.labels.suffix.lower() == ".npy":
                raise ValueError(
                    f"cannot write {self.labels}: a .npy file has no column of ids; name a .csv, "
                    ".tsv, .txt or .parquet, or leave out --id."
                )
        for path, ends in ((self.labels, TABLES), (self.out, None)):
            if path is not None:
                known = ends or endings(str(data), "--out")
                check_output(path, known, others=used, force=force)
                used.append(path)

    def stamp(self, data: FileName, reading: Reading) -> Stamp | None:
        """Return the stamp of DATA before it is read, if it will be read once more."""
        from lloydia.data.labelled import stamp

        return stamp(Path(data)) if reading.id is not None or self.out is not None else None

    def original(
        self, data: FileName, before: Stamp | None, reading: Reading, table: Table
    ) -> Original | None:
        """Return DATA to be read once more, if that is needed, before any work is done.

        Raises
        ------
        ValueError
            It has no such column of ids, or has one named as that of the clusters.
        """
        if before is None:
            return None
        original = reading.original(data, before, table)
        if self.out is not None:
            original.check_name(self.cluster_name)
            original.check_ending(self.out)
        return original

    def write(
        self, labels: Labels, original: Original | None, id_column: str | None, renames: Renames
    ) -> None:
        """Write the files under temporary names; they are renamed when `renames` closes."""
        from lloydia.data.chunks.writing import put_blocks
        from lloydia.data.outputs import writing

        if self.labels is not None:
            with writing(self.labels, renames) as to:
                suffix = self.labels.suffix.lower()
                if id_column is not None and original is not None:
                    original.write_ids(to, labels, id_column, suffix)
                else:
                    slices = (labels[i : i + SLICE] for i in range(0, len(labels), SLICE))
                    put_blocks(to, slices, len(labels), ["label"], suffix)
        if self.out is not None and original is not None:
            with writing(self.out, renames) as to:
                original.write(to, labels, self.cluster_name, self.out.suffix.lower())
