"""What a file is, by its first bytes; and what to do with one that is not read."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lloydia.data.columns import DataError

__all__ = ["SNIFFED", "Kind", "kind_of", "refuse_binary", "refuse_kind"]

# Bytes from the beginning of a file that are looked at: a tar archive has its mark at 257.
SNIFFED = 8192


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Parameters
    ----------
    what : str
        What an error calls it.
    advice : str
        What to do with it; "" where its name needs the right extension.
    suffix : str
        The extension under which it is read, if it is.
    compressed : bool
        Whether it is a compressed file, read under its own extension after another.
    """

    what: str
    advice: str = ""
    suffix: str = ""
    compressed: bool = False

    def remedy(self, path: str) -> str:
        """Return what to do with a file of this kind."""
        if self.advice:
            return self.advice
        if self.compressed and Path(path).suffix.lower() in TAR:
            return "extract it, as a tar archive"
        if self.compressed:
            return f"name it {Path(path).name}{self.suffix}, or decompress it"
        if Path(path).suffix.lower() == self.suffix:
            return "save its numbers as .npy"
        return f"name it {self.suffix}"


# Names of compressed tar archives.
TAR = (".tgz", ".tbz", ".tbz2", ".txz", ".tzst")

EXPORT = "save it as CSV with the program that made it, and give that"
AS_CSV = "open it in a spreadsheet program, save the sheet as CSV, and give that"
FROM_PYTHON = "load it in Python and save its numbers by numpy.save, as .npy"
PICTURE = "lloydia segment and quantize take pictures"
FROM_JSON = (
    "make a CSV file of it, such as by pandas.read_json(...).to_csv('table.csv', index=False)"
)

NUMPY = Kind("a NumPy array", suffix=".npy")
ARCHIVE = Kind("a NumPy archive", suffix=".npz")
PARQUET = Kind("a Parquet file", suffix=".parquet")
ARROW = Kind("an Arrow file", suffix=".arrow")
ZIP = Kind("a zip archive", "name it .npz if NumPy wrote it, else extract it")
EXCEL = Kind("an Excel workbook", AS_CSV)
OLD_OFFICE = Kind("a file of an old Excel (.xls) or another Office program", AS_CSV)
OPEN_SHEET = Kind("an OpenDocument spreadsheet", AS_CSV)
HDF5 = Kind("an HDF5 file", suffix=".h5")
MATLAB = Kind(
    "a MATLAB file", "save its matrix by writematrix(X, 'table.csv') in MATLAB, and give that"
)
R_DATA = Kind("a file of R's data", "write.csv(table, 'table.csv', row.names = FALSE) in R")
PICKLE = Kind("a Python pickle, which is never read since it may run any code", FROM_PYTHON)
JSON = Kind("JSON", FROM_JSON)
STATISTICS = Kind("a file of a statistics program", EXPORT)
HTML = Kind("an HTML page", "download the table itself, not the page that shows it")
XML = Kind("XML", EXPORT)

GZIP = Kind("compressed by gzip", suffix=".gz", compressed=True)
BZIP2 = Kind("compressed by bzip2", suffix=".bz2", compressed=True)
XZ = Kind("compressed by xz", suffix=".xz", compressed=True)
ZSTANDARD = Kind("compressed by Zstandard", suffix=".zst", compressed=True)
OTHERWISE = Kind("compressed by a program whose files are not read", "decompress it first")


def _picture(name: str) -> Kind:
    return Kind(f"a {name} picture", PICTURE)


# A place in the file, the bytes that are there, and what the file is.  None of them can be the
# beginning of a table of text.
SIGNATURES: tuple[tuple[int, bytes, Kind], ...] = (
    (0, b"\x93NUMPY", NUMPY),
    (0, b"PAR1\x15", PARQUET),
    (0, b"PARE\x15", Kind("an encrypted Parquet file", "write it without encryption")),
    (0, b"ARROW1\x00\x00", ARROW),
    (0, b"\xff\xff\xff\xff", ARROW),
    (
        0,
        b"FEA1\x00\x00\x00\x00",
        Kind("a Feather file of version 1", "write it anew by a later pyarrow"),
    ),
    (0, b"\x1f\x8b", GZIP),
    (4, b"1AY&SY", BZIP2),
    (4, b"\x17\x72\x45\x38\x50\x90", BZIP2),
    (0, b"\xfd7zXZ\x00", XZ),
    (0, b"\x28\xb5\x2f\xfd", ZSTANDARD),
    (0, b"\x04\x22\x4d\x18", OTHERWISE),
    (0, b"\x1f\x9d", OTHERWISE),
    (0, b"7z\xbc\xaf\x27\x1c", Kind("a 7-Zip archive", "extract it")),
    (0, b"Rar!\x1a\x07", Kind("a RAR archive", "extract it")),
    (257, b"ustar", Kind("a tar archive", "extract it")),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLD_OFFICE),
    (0, b"\x89HDF\r\n\x1a\n", HDF5),
    (512, b"\x89HDF\r\n\x1a\n", HDF5),
    (0, b"CDF\x01", Kind("a netCDF file", FROM_PYTHON)),
    (0, b"CDF\x02", Kind("a netCDF file", FROM_PYTHON)),
    (0, b"CDF\x05", Kind("a netCDF file", FROM_PYTHON)),
    (0, b"MATLAB 5.0 MAT-file", MATLAB),
    (0, b"MATLAB 7.3 MAT-file", MATLAB),
    (0, b"RDX2\nX\n", R_DATA),
    (0, b"RDX3\nX\n", R_DATA),
    (0, b"X\n\x00\x00\x00", R_DATA),
    (0, b"SQLite format 3\x00", Kind("an SQLite database", "export its table as CSV")),
    (0, b"%PDF-", Kind("a PDF document", "get its table as CSV where it comes from")),
    (0, b"{\\rtf", Kind("a document of a word processor", "save its table as CSV")),
    (0, b"Obj\x01", Kind("an Avro file", "write it as Parquet")),
    (0, b"<stata_dta>", STATISTICS),
    (0, b"$FL2", STATISTICS),
    (0, b"$FL3", STATISTICS),
    (0, b"HEADER RECORD*******", STATISTICS),
    (12, b"\xc2\xea\x81\x60\xb3\x14\x11\xcf", STATISTICS),
    (0, b"\xff\xd8\xff", _picture("JPEG")),
    (0, b"\x89PNG", _picture("PNG")),
    (0, b"GIF87a", _picture("GIF")),
    (0, b"GIF89a", _picture("GIF")),
    (0, b"II*\x00", _picture("TIFF")),
    (0, b"MM\x00*", _picture("TIFF")),
    (8, b"WEBPVP8", _picture("WebP")),
    (8, b"WAVEfmt", Kind("a sound", EXPORT)),
    (4, b"ftypheic", _picture("HEIF")),
    (4, b"ftypavif", _picture("AVIF")),
    (0, b"\x7fELF", Kind("a program", "give a table")),
)

# What begins like text and is no table.
PAGE = re.compile(rb"<(!doctype\s+html|html|head|body|table)\b", re.I)
MARKUP = re.compile(rb"<\?xml\b", re.I)
OBJECTS = re.compile(rb'\{\s*("|\}\s*$)|\[\s*(\{|\[|"|-?\d[\d.eE+-]*\s*[,\]][^\[]*\]\s*$)')

# Names that say what a file is where its bytes do not.
BY_NAME = {
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), PICKLE),
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".geojson"), JSON),
    **dict.fromkeys((".mat",), MATLAB),
    **dict.fromkeys((".rds", ".rda", ".rdata"), R_DATA),
    **dict.fromkeys((".xls", ".xlsx", ".xlsm", ".xlsb"), EXCEL),
    **dict.fromkeys((".ods", ".numbers"), OPEN_SHEET),
    **dict.fromkeys((".sav", ".dta", ".sas7bdat", ".xpt", ".por"), STATISTICS),
}
# Of these, what is no text whatever the first bytes are.
ALWAYS = (".pkl", ".pickle", ".joblib")


def kind_of(start: bytes, suffix: str = "", stream: BinaryIO | None = None) -> Kind | None:
    """Return what a file is; None where it may be a text.

    Parameters
    ----------
    start : bytes
        The first `SNIFFED` bytes, or all.
    suffix : str
        The extension, in lower case.
    stream : binary file or None
        The file, at its beginning, if it can be sought in: a zip archive is told by its contents.
    """
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return _zipped(stream)
    for place, magic, kind in SIGNATURES:
        if start[place : place + len(magic)] == magic:
            matlab = kind is HDF5 and (place or suffix == ".mat")
            return MATLAB if matlab else kind
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return PICKLE
    if start[:2] == b"BM" and len(start) > 26 and start[6:10] == bytes(4):
        return _picture("BMP")
    if suffix in ALWAYS and start:
        return BY_NAME[suffix]
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if PAGE.match(text):
        return HTML
    if MARKUP.match(text):
        return HTML if re.search(rb"<html\b", text, re.I) else XML
    return JSON if OBJECTS.match(text) else None


def _zipped(stream: BinaryIO | None) -> Kind:
    """Return what a zip archive is, by the names in it."""
    if stream is None:
        return ZIP
    place = stream.tell()
    try:
        names = zipfile.ZipFile(stream).namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return ZIP
    finally:
        stream.seek(place)
    if any(name.startswith("xl/") for name in names):
        return EXCEL
    if "content.xml" in names and "mimetype" in names:
        return OPEN_SHEET
    if any(name.startswith(("word/", "ppt/")) for name in names):
        return Kind("an Office document", AS_CSV)
    if names and all(name.endswith(".npy") for name in names):
        return ARCHIVE
    return ZIP


def refuse_kind(kind: Kind | None, where: str, wanted: str = "text") -> None:
    """Refuse a file that is of a kind, where another was expected.

    Raises
    ------
    DataError
        It is of that kind; the sentence says what to do with it.
    """
    if kind is not None:
        raise DataError(f"{where} is {kind.what}, not {wanted}; {kind.remedy(where)}.")


def refuse_binary(start: bytes, suffix: str, where: str) -> None:
    """Refuse a file that cannot be text: it holds bytes of value zero.

    Raises
    ------
    DataError
        It is none.
    """
    if b"\x00" not in start or start.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        return
    refuse_kind(BY_NAME.get(suffix), where)
    raise DataError(
        f"{where} is not text: it holds bytes of value zero; give a table as CSV, or UTF-16 text "
        "with a byte-order mark."
    )
