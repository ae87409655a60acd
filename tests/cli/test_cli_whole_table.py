"""--id and --out: which row a label belongs to, and the whole table with its clusters."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma

import numpy as np
import pandas as pd
import pytest

import lloydia
from lloydia import KMeans
from lloydia.data.labelled import row_groups, text

PEOPLE = """# what it is

name,"height, cm",weight,note
"Smith, John",180,80.5,"said ""hi"" "
Ann  ,165,55,ok;fine

"many
lines",170,60,
Bob,190,95,NA
Zoë,160,50,x
"""
TWO = '"height, cm",weight'
ROWS = np.array([[180, 80.5], [165, 55], [170, 60], [190, 95], [160, 50]])
LABELS = KMeans(2, random_state=0).fit(ROWS).labels_.tolist()
FIT = ("-k", 2, "--columns", TWO)


@pytest.fixture
def people(folder):
    path = folder / "people.csv"
    path.write_bytes(PEOPLE.encode())
    return path


def cells(path, **how):
    text = path.read_text(encoding="utf-8")
    return list(csv.reader(io.StringIO(text, newline=""), **how))


def test_the_whole_table_as_it_is_with_a_column_more(run, people, folder):
    ran = run("fit", people, *FIT, "--out", "out.csv", "--json")
    assert (ran.status, ran.err) == (0, "")
    assert json.loads(ran.out)["out"] == "out.csv"
    marked = ["", "", "cluster", *(str(label) for label in LABELS)]
    rows = PEOPLE.replace("many\nlines", "many|lines").split("\n")
    expected, values = [], iter(marked[2:])
    for row in rows:
        expected.append(f"{row},{next(values)}" if "," in row else row)
    assert (folder / "out.csv").read_text(encoding="utf-8") == "\n".join(expected).replace(
        "|", "\n"
    )
    # What was written is a table as before.
    again = run("fit", "out.csv", *FIT, "--labels", "l.npy")
    assert (again.status, np.load("l.npy").tolist()) == (0, LABELS)


@pytest.mark.parametrize("name", ["name", "1", '"name"'])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".parquet"])
def test_ids_stand_before_the_labels(run, people, folder, name, suffix):
    path = folder / f"labels{suffix}"
    assert run("fit", people, *FIT, "--id", name, "--labels", path).status == 0
    names = ["Smith, John", "Ann  ", "many\nlines", "Bob", "Zoë"]
    if suffix == ".parquet":
        frame = pd.read_parquet(path)
        assert frame.columns.tolist() == ["name", "label"]
        assert (frame["name"].tolist(), frame["label"].tolist()) == (names, LABELS)
        return
    found = cells(path, delimiter={".csv": ",", ".tsv": "\t", ".txt": " "}[suffix])
    header = [] if suffix == ".txt" else [["name", "label"]]
    assert found == header + [[a, str(b)] for a, b in zip(names, LABELS)]
    assert run("score", people, path, "--columns", TWO, "--id", name).status == 0


def test_the_column_of_ids_is_no_feature(run, folder):
    (folder / "x.csv").write_text("key,a,b\n7,1,2\n8,1,3\n900,9,9\n")
    run("fit", "x.csv", "-k", 2, "--id", "key", "--model", "m.npz", "--labels", "l.csv")
    assert lloydia.load("m.npz").feature_names_in_.tolist() == ["a", "b"]
    assert [row[0] for row in cells(folder / "l.csv")] == ["key", "7", "8", "900"]
    ran = run("predict", "m.npz", "x.csv", "--id", "key")
    assert ran.out == "7,{0}\n8,{0}\n900,{1}\n".format(
        *(row[1] for row in cells(folder / "l.csv")[2:])
    )
    facts = json.loads(run("predict", "m.npz", "x.csv", "--id", "key", "--json").out)
    assert facts["ids"] == ["7", "8", "900"]
    (folder / "plain.csv").write_text("7,1,2\n8,1,3\n9,9,9\n")
    run("fit", "plain.csv", "-k", 2, "--id", "1", "--labels", "p.csv", "--no-header")
    assert cells(folder / "p.csv")[0] == ["id", "label"]


TEXTS = {
    "semicolons": ('x;y;who\r\n1,5;2,0;a\r\n9,5;3;"b;c"\r\n', ("--decimal", ",")),
    "tabs": ("x\ty\twho\n1\t2\ta b\n9\t3\tb\n", ()),
    "blanks": ("x y who\n1  2 a\n9 3   b", ()),
    "all in quotes": ('"x","y","who"\n"1","2","a"\n"9","3","b"\n', ()),
    "no header": ("1,2,a\n9,3,b\n", ("--no-header",)),
    "Excel": ("sep=;\nx;y;who\n1;2;a\n9;3;b\n", ()),
    "old line ends": ("x,y,who\r1,2,a\r9,3,b\r", ()),
    "names of rows": ('"x" "y" "who"\n"r1" 1 2 a\n"r2" 9 3 b\n', ()),
}
ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": b"",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "utf-32-le": b"\xff\xfe\0\0",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", TEXTS)
def test_each_spelling_stays(run, folder, name, encoding):
    text, options = TEXTS[name]
    text = text.replace("who", "größe")
    (folder / "x.dat").write_bytes(ENCODINGS[encoding] + text.encode(encoding))
    columns = "2-3" if name == "names of rows" else "1-2"
    ran = run("fit", "x.dat", "-k", 2, "--columns", columns, "--out", "out.txt", *options)
    assert ran.status == 0, ran.err
    found = (folder / "out.txt").read_bytes()
    assert found.startswith(ENCODINGS[encoding])
    lines = found.removeprefix(ENCODINGS[encoding]).decode(encoding).splitlines(keepends=True)
    before = text.splitlines(keepends=True)
    assert len(lines) == len(before)
    added = []
    for new, old in zip(lines, before):
        body = old.rstrip("\r\n")
        if old.startswith("sep="):
            assert new == old
            continue
        assert new.startswith(body)
        assert new.endswith(old[len(body) :])
        added.append(new[len(body) : len(new) - len(old) + len(body)])
    mark = {"semicolons": ";", "Excel": ";", "tabs": "\t"}.get(name, ",")
    mark = " " if name in ("blanks", "names of rows") else mark
    quote = '"' * (name in ("all in quotes", "names of rows"))
    header = [] if name == "no header" else [f"{mark}{quote}cluster{quote}"]
    assert added[: len(header)] == header
    assert sorted(added[len(header) :]) == [f"{mark}0", f"{mark}1"]


def test_an_empty_last_column_without_a_name(run, folder):
    (folder / "x.csv").write_text("a,b\n1,2,\n3,4,\n9,9,\n")
    run("fit", "x.csv", "-k", 2, "--columns", "1-2", "--out", "out.csv")
    lines = (folder / "out.csv").read_text().split("\n")
    assert lines[0] == "a,b,,cluster"
    assert lines[1][:-1] == "1,2,,"
    assert run("fit", "out.csv", "-k", 2, "--columns", "a,b").status == 0


@pytest.mark.parametrize("packed", [gzip, bz2, lzma])
def test_compressed_tables_come_out_plain(run, folder, packed):
    suffix = {gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[packed]
    (folder / f"people.csv{suffix}").write_bytes(packed.compress(PEOPLE.encode()))
    given = f"people.csv{suffix}"
    ran = run("fit", given, *FIT, "--out", "out.csv", "--id", "name", "--labels", "l.csv")
    assert ran.status == 0, ran.err
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    run("fit", "people.csv", *FIT, "--out", "same.csv")
    assert (folder / "out.csv").read_bytes() == (folder / "same.csv").read_bytes()


def test_bytes_that_are_no_text_stay(run, folder):
    (folder / "x.csv").write_bytes(b"a,b,c\n1,2,\xff\n3,4,\xfe\xfe\n9,9,x\n")
    columns = ("--columns", "a,b")
    run("fit", "x.csv", "-k", 2, *columns, "--out", "o.csv", "--id", "c", "--labels", "l.csv")
    assert b"\n1,2,\xff," in (folder / "o.csv").read_bytes()
    assert b"\n\xfe\xfe," in (folder / "l.csv").read_bytes()
    ran = run("fit", "x.csv", "-k", 2, *columns, "--id", "c", "--labels", "l.parquet")
    assert (ran.status, "is not UTF-8 text in row 1" in ran.err) == (2, True)
    assert not (folder / "l.parquet").exists()


def test_the_name_of_the_column(run, people, folder):
    run("fit", people, *FIT, "--out", "out.csv")
    ran = run("fit", "out.csv", *FIT, "--out", "two.csv")
    assert ran.status == 2
    assert "has a column 'cluster' already: name the new one with --cluster-name NAME." in ran.err
    assert not (folder / "two.csv").exists()
    run("fit", "out.csv", *FIT, "--out", "two.csv", "--cluster-name", 'a, "b"')
    assert '"a, ""b"""' in (folder / "two.csv").read_text(encoding="utf-8")


REFUSED = {
    "standard input": (("-", "--out", "o.csv"), "a pipe can be read once"),
    "ids of standard input": (("-", "--id", "name"), "a pipe can be read once"),
    "array": (("x.npy", "--out", "o.csv"), "x.npy is an array without other columns"),
    "another kind": (("people.csv", "--out", "o.parquet"), "must be one of .csv, .tsv, .txt"),
    "compressed": (("people.csv", "--out", "o.csv.gz"), "must be one of .csv, .tsv, .txt"),
    "tabs": (("people.csv", "--out", "o.tsv"), "separated by commas, and stay so"),
    "the input": (("people.csv", "--out", "people.csv"), "uses that file already"),
    "one file twice": (
        ("people.csv", "--out", "o.csv", "--labels", "o.csv"),
        "uses that file already",
    ),
    "ids in .npy": (
        ("people.csv", "--id", "name", "--labels", "l.npy"),
        "a .npy file has no column of ids",
    ),
    "no such column": (("people.csv", "--id", "nme"), "there is no column 'nme'"),
    "number": (("people.csv", "--id", "7"), "--id 7 is outside its columns 1 to 4"),
    "a feature": (("people.csv", "--id", "weight"), "holds the ids, and is among the columns"),
}


@pytest.mark.parametrize(("words", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_before_any_work(run, people, folder, words, says):
    np.save("x.npy", ROWS)
    before = {path.name for path in folder.iterdir()}
    ran = run("fit", *words, *FIT, stdin=PEOPLE.encode())
    assert (ran.status, ran.out) == (2, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == before


def test_labels_of_other_ids(run, people, folder):
    run("fit", people, *FIT, "--id", "name", "--labels", "l.csv")
    score = ("score", people, "l.csv", "--columns", TWO)
    assert "has 2 columns; labels are one column, or two with --id COLUMN" in run(*score).err
    lines = (folder / "l.csv").read_text(encoding="utf-8").replace("Bob", "Rob")
    (folder / "l.csv").write_text(lines, encoding="utf-8")
    ran = run(*score, "--id", "name")
    assert ran.status == 2
    assert "row 4 has the id 'Rob', and that row of the data has 'Bob'" in ran.err


def exchange(first, second):
    """Let each of two files have the content of the other one."""
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "-k", "2", "--out", "o.csv"),
        ("fit", "-k", "2", "--id", "name", "--labels", "l.csv"),
        ("fit", "-k", "2", "--id", "name", "--labels", "l.parquet"),
        ("predict", "--out", "o.csv"),
        ("predict", "--id", "name"),
        ("predict", "--id", "name", "--json"),
    ],
    ids=" ".join,
)
def test_a_table_that_is_sorted_during_the_work(run, people, folder, monkeypatch, words):
    assert run("fit", people, *FIT, "--model", "m.npz").status == 0
    lines = PEOPLE.splitlines(keepends=True)
    (folder / "sorted.csv").write_bytes(
        "".join([*lines[:5], lines[8], *lines[5:8], lines[9]]).encode()
    )
    name = words[0]
    work = getattr(KMeans, name)

    def disturbed(*given, **named):
        exchange(people, folder / "sorted.csv")
        return work(*given, **named)

    monkeypatch.setattr(KMeans, name, disturbed)
    before = sorted(folder.iterdir())
    model = ["m.npz"] if name == "predict" else []
    ran = run(name, *model, people, "--columns", TWO, *words[1:])
    assert (ran.status, ran.out) == (2, "")
    assert "people.csv changed while this command ran" in ran.err
    assert sorted(folder.iterdir()) == before


def test_a_table_that_is_sorted_while_it_is_scored(run, people, folder, monkeypatch):
    from lloydia.cli.reading import Reading

    run("fit", people, *FIT, "--id", "name", "--labels", "l.csv")
    read = Reading.table

    def disturbed(*given, **named):
        found = read(*given, **named)
        people.write_bytes(people.read_bytes().replace(b"80.5", b"99.5"))
        return found

    monkeypatch.setattr(Reading, "table", disturbed)
    ran = run("score", people, "l.csv", "--columns", TWO, "--id", "name")
    assert (ran.status, "people.csv changed while this command ran" in ran.err) == (2, True)


# -- Parquet and Arrow -------------------------------------------------------------------------


@pytest.fixture
def frame(folder):
    n = 300
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "name": [f"p {i}" for i in range(n)],
            "x": rng.normal(size=n),
            "when": pd.date_range("2020", periods=n, freq="h"),
            "y": rng.normal(size=n).astype("f4"),
            "kind": pd.Categorical(["a", "b", "c"] * (n // 3)),
            "missing": pd.array([1, None, 3] * (n // 3), dtype="Int64"),
            "list": [[i, i + 1] for i in range(n)],
        }
    )
    table.to_parquet("p.parquet", row_group_size=70)
    (folder / "parts").mkdir()
    table[:100].to_parquet("parts/a.parquet", index=False)
    table[100:].to_parquet("parts/b.parquet", index=False)
    table.to_feather("p.feather")
    return table


XY = ("-k", 3, "--columns", "x,y", "--id", "name")


@pytest.mark.parametrize(
    ("data", "out", "more"),
    [
        ("p.parquet", "o.parquet", ()),
        ("p.parquet", "o.parquet", ("--memory", "2GB")),
        ("parts", "o.parquet", ()),
        ("p.feather", "o.feather", ()),
        ("p.feather", "o.parquet", ()),
    ],
)
def test_all_columns_of_all_types_stay(run, frame, data, out, more):
    ran = run("fit", data, *XY, "--out", out, "--labels", "l.parquet", "--model", "m.npz", *more)
    assert ran.status == 0, ran.err
    read = pd.read_parquet if out.endswith("parquet") else pd.read_feather
    found, labels = read(out), pd.read_parquet("l.parquet")
    clusters = found.pop("cluster")
    pd.testing.assert_frame_equal(found, frame)
    assert labels["name"].tolist() == frame["name"].tolist()
    assert labels["label"].tolist() == clusters.tolist()
    assert clusters.tolist() == KMeans(3, random_state=0).fit(frame[["x", "y"]]).labels_.tolist()
    memory = more if data.endswith("parquet") else ()
    files = ("--out", f"p-{out}", "--labels", "pl.csv")
    ran = run("predict", "m.npz", data, "--id", "name", *files, *memory)
    assert ran.status == 0, ran.err
    assert read(f"p-{out}")["cluster"].tolist() == clusters.tolist()


def test_the_index_of_pandas_may_be_the_ids(run, frame):
    frame.set_index("name")[["x", "y"]].to_parquet("i.parquet")
    assert run("fit", "i.parquet", "-k", 3, "--id", "name", "--labels", "l.csv").status == 0
    assert pd.read_csv("l.csv")["name"].tolist() == frame["name"].tolist()


@pytest.mark.parametrize("memory", [(), ("--memory", "2GB")])
@pytest.mark.parametrize("how", ["replaced", "in another order", "one more"])
def test_files_that_change_during_the_work(run, frame, folder, monkeypatch, memory, how):
    work = KMeans.fit
    a, b, c = (folder / "parts" / f"{name}.parquet" for name in "abc")

    def disturbed(*given, **named):
        found = work(*given, **named)
        if how == "replaced":
            frame[:100].sort_values("x").to_parquet("new.parquet", index=False)
            (folder / "new.parquet").replace(a)
        elif how == "in another order":
            a.rename(c)
        else:
            frame[:1].to_parquet(c, index=False)
        return found

    monkeypatch.setattr(KMeans, "fit", disturbed)
    ran = run("fit", "parts", *XY, "--out", "o.parquet", *memory)
    assert (ran.status, "parts changed while this command ran" in ran.err) == (2, True)
    assert not (folder / "o.parquet").exists()
    assert b.exists()


@pytest.mark.parametrize("compression", ["NONE", "SNAPPY", "ZSTD", "GZIP"])
def test_row_groups_are_long_and_compressed_as_before(run, folder, compression):
    parquet = pytest.importorskip("pyarrow.parquet")
    n = 30_000
    table = pd.DataFrame({"name": np.arange(n), "x": np.arange(n) % 7.0})
    # Each file has other categories.
    (folder / "x").mkdir()
    for i, rows in enumerate((table[:12_000], table[12_000:])):
        rows = rows.assign(kind=pd.Categorical([f"{i} {j % 5}" for j in range(len(rows))]))
        rows.to_parquet(f"x/{i}.parquet", index=False, compression=compression)
    options = ("--columns", "x", "--id", "name", "--out", "o.parquet", "--labels", "l.parquet")
    ran = run("fit", "x", "-k", 2, *options)
    assert ran.status == 0, ran.err
    for path in ("o.parquet", "l.parquet"):
        metadata = parquet.ParquetFile(path).metadata
        assert metadata.num_row_groups == 1
        group = metadata.row_group(0)
        found = {group.column(j).compression for j in range(group.num_columns)}
        assert found == {"UNCOMPRESSED" if compression == "NONE" else compression}
    found, before = (parquet.read_table(path).to_pydict() for path in ("o.parquet", "x"))
    assert len(found.pop("cluster")) == n
    assert found == before


def test_row_groups_end_at_a_number_of_rows_or_bytes(monkeypatch):
    pa = pytest.importorskip("pyarrow")
    tables = [pa.table({"x": np.arange(10)})] * 7
    monkeypatch.setattr(row_groups, "ROWS", 30)
    assert [len(table) for table in row_groups.gathered(tables)] == [30, 30, 10]
    monkeypatch.setattr(row_groups, "BYTES", 150)
    assert [len(table) for table in row_groups.gathered(tables)] == [20, 20, 20, 10]
    assert list(row_groups.gathered([])) == []


def test_ids_of_a_text_are_one_row_group(run, folder, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(text, "BLOCK", 10)
    (folder / "x.csv").write_text("id,x\n" + "".join(f"r{i},{i}\n" for i in range(35)))
    assert run("fit", "x.csv", "-k", 2, "--id", "id", "--labels", "l.parquet").status == 0
    metadata = parquet.ParquetFile("l.parquet").metadata
    assert (metadata.num_rows, metadata.num_row_groups) == (35, 1)


def test_files_of_a_folder_with_other_columns(run, frame, folder):
    frame[:50].drop(columns="when").to_parquet("parts/c.parquet", index=False)
    ran = run("fit", "parts", *XY, "--out", "o.parquet")
    assert (ran.status, "has other columns" in ran.err) == (2, True)
    assert not (folder / "o.parquet").exists()
    assert run("fit", "parts", *XY, "--labels", "l.csv").status == 0


def test_a_model_with_names_predicts_a_table_with_text_by_blocks(run, frame):
    run("fit", "p.parquet", *XY, "--model", "m.npz")
    ran = run("predict", "m.npz", "p.parquet", "--memory", "2GB", "--labels", "l.npy")
    assert ran.status == 0, ran.err
