"""Command lines that newcomers type, and what the answer proposes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lloydia import __version__

TABLE = "id,name,age,income\n7,ann,33,5\n3,bob,44,6\n4,eve,22,9\n1,joe,66,7\n"
NUMBERS = "age,income\n33,5\n44,6\n22,9\n66,7\n"

ANSWERS = {
    # A command, and what the sentence says.
    "": {
        "table.csv -k 3": "'table.csv' is no command; did you mean lloydia fit table.csv?",
        "photo.png": "'photo.png' is no command; did you mean lloydia quantize photo.png?",
        "-k 3 fit numbers.csv": "Unknown option: -k; a command comes first: fit, predict, score,",
        "cluster numbers.csv": "Unknown command cluster; did you mean fit?",
        "kmeans numbers.csv": "Unknown command kmeans; did you mean fit?",
        "Fit numbers.csv": "Unknown command Fit; did you mean fit?",
        "silhouette numbers.csv": "Unknown command silhouette; did you mean score?",
        "frobnicate": "Unknown command frobnicate; the commands are fit, predict, score",
        "-v": "Unknown option: -v; did you mean -V?",
        "--Version": "Unknown option: --Version; did you mean --version?",
        "--install-completion=zsh": "=zsh; did you mean --install-completion zsh?",
        "completion": "Unknown command completion; did you mean --install-completion?",
        "help nonsense": "Unknown command nonsense; the commands are fit",
        "ladder rnu A": "Unknown command rnu; did you mean run?",
        "ladder dump --rung r01_loyd": "; did you mean r01_lloyd?",
        "bench peers --cases chna": "; did you mean china?",
        "bench peers --peers FIASS": "; did you mean FAISS?",
        "bench images --photographs chna": "; did you mean china?",
    },
    "fit": {
        "": "DATA is required (see lloydia fit --help).",
        "numbers.csv": "-k is required, such as -k 8 (see",
        "numbers.csv 3": "-k is required; did you mean -k 3?",
        "numbers.csv k=3": "-k is required; did you mean -k 3?",
        "3 numbers.csv": "-k is required; did you mean -k 3?",
        "numbers.csv --threads 2": "-k is required, such as -k 8 (see",
        "numbers.csv -k": "-k needs a value, such as -k 8",
        "numbers.csv -k three": "-k: 'three' is not a whole number",
        "numbers.csv -k 0": "Invalid value 0 for -k: it must be >= 1 (see",
        "Numbers.csv -k 3": "no such file: Numbers.csv; did you mean numbers.csv?",
        "nmbers.csv -k 3": "no such file: nmbers.csv; did you mean numbers.csv?",
        "numbers.txt -k 3": "no such file: numbers.txt; did you mean numbers.csv?",
        "other.csv -k 3": "no such file: other.csv.",
        "*.xls -k 3": "no such file: *.xls; no name matches this pattern.",
        "sub/x.csv -k 3": "no such file: sub/x.csv, as there is no folder sub.",
        "photo.png -k 3": "photo.png is a PNG picture, not text; lloydia segment and quantize take",
        "model.npz -k 3": "model.npz is a model or a checkpoint of Lloydia, not a table;",
        "table.csv -k 2": "choose numeric columns, such as --columns 3-4 (",
        "table.csv -k 2 --columns Age,incme": "no column 'Age' (did you mean 'age'?) or 'incme' "
        "(did you mean 'income'?); its columns are 'id', 'name', 'age', 'income'.",
        "table.csv -k 2 --columns age income": "write a comma between columns: "
        "--columns age,income (see",
        "--columns age income table.csv -k 2": "write a comma between columns: "
        "--columns age,income (see",
        "table.csv numbers.csv -k 2 --columns age": "'numbers.csv' is one too many (see",
        "numbers.csv -k 2 --header yes": "'yes' is one too many, as --header takes no value",
        "numbers.csv -k 2 --json out.json": "'out.json' is one too many, as --json takes no value",
        "numbers.csv -k 2 --device gpu": "; did you mean cuda?",
        "numbers.csv -k 2 --device NVIDIA": "; did you mean cuda?",
        "none.csv -k 2 --device CUDA": "; did you mean cuda?",
        "numbers.csv -k 2 --device cuda0": "; did you mean cuda:0?",
        "numbers.csv -k 2 --device tpu": "'cuda:N,M' or 'cuda:all' (see",
        "numbers.csv -k 2 --algorithm hamerley": "; did you mean hamerly?",
        "numbers.csv -k 2 --algorithm full": "; did you mean lloyd?",
        "numbers.csv -k 2 --algorithm brute": "elkan, filtering (see",
        "numbers.csv -k 2 --init kmeans++": "or a file of centres; did you mean k-means++?",
        "numbers.csv -k 2 --init kmeans": "or a file of centres; did you mean k-means++?",
        "numbers.csv --n_clusters 2": "Unknown option: --n_clusters; did you mean -k? (see",
        "numbers.csv --clusters=2": "Unknown option: --clusters=2; did you mean -k? (see",
        "numbers.cvs -k 2": "no such file: numbers.cvs; did you mean numbers.csv?",
        "number.cvs -k 2": "no such file: number.cvs; did you mean numbers.csv?",
        "numbers.csv -k 2 --init number.csv": "number.csv; did you mean numbers.csv?",
        "numbers.csv -k 2 --init centers.csv": "no such file: centers.csv; give k-means++",
        "none.csv -k 2 --device cuda:7": "--device cuda:7 ",
        "numbers.csv -k 2 --stop labels:2": "rule 'labels:2': fraction must be a number from 0 to",
        "numbers.csv -k 2 --dtype double": "auto, float32, float64; did you mean float64?",
        "numbers.csv -k 2 --dtype float16": "auto, float32, float64 (see",
        "numbers.csv -k 2 --empty raise": "relocate, keep, error; did you mean error?",
        "numbers.csv -k 2 --stop label": "; did you mean labels?",
        "numbers.csv -k 2 --stop inertia": "it needs a number; write inertia:0.001.",
        "numbers.csv -k 2 --decimal comma": "must be a point or a comma.",
    },
    "predict": {
        "model.npz": "DATA is required: predict takes one MODEL and one DATA (see",
        "--model model.npz numbers.csv": "write it without an option: lloydia predict MODEL",
        "numbers.csv model.npz": "numbers.csv is not a model: give MODEL first",
        "mode.npz numbers.csv": "no such file: mode.npz; did you mean model.npz?",
    },
    "score": {
        "numbers.csv": "LABELS is required: score takes one DATA and one LABELS (see",
        "numbers.csv --labels l.csv": "write it without an option: lloydia score DATA LABELS",
        "numbers.csv numbers.csv --device GPU": "; did you mean cuda?",
    },
    "quantize": {
        "numbers.csv -k 4": "numbers.csv is a table, not an image; lloydia fit clusters tables.",
        "photo.png 16": "-k is required; did you mean -k 16?",
        "phto.png -k 4": "no such file: phto.png; did you mean photo.png?",
        "photo.png -k 4 --dither floyd": "; did you mean floyd-steinberg?",
        "photo.png -k 4 --space CIELab": "; did you mean Lab?",
        "--image photo.png -k 4": "--image; write it without an option: lloydia quantize IMAGE",
    },
    "fot": {"numbers.csv": "Unknown command fot; did you mean fit? (see"},
    "number": {"-k 2": "'number' is no command; did you mean lloydia fit numbers.csv? (see"},
    "phot.png": {"-k 2": "is no command; did you mean lloydia quantize photo.png? (see"},
    "photo.jpg": {"": "is no command; did you mean lloydia quantize photo.png? (see"},
    "xyzzy": {"": "Unknown command xyzzy; the commands are fit, predict, score"},
    "warm-up": {"--device gpu": "choose from cpu, cuda; did you mean cuda? (see"},
    "bench": {
        "peers --peers sklearn": "; did you mean scikit-learn?",
        "report repot.jsonl": "no such file: repot.jsonl.",
    },
    "ladder": {
        "run wlak": "'wlak' is not one of walk, T, A, B, C, D; did you mean walk? (see",
        "run --experiments A": "write it without an option: lloydia ladder run EXPERIMENTS",
    },
    "segment": {
        "photo.png 5": "5 is in the place of MODE: write -k 5, or Oklab 5.",
        "photo.png -k 5 --device gpu": "; did you mean cuda?",
    },
}

# An unknown option, and what it proposes, if anything.
OPTIONS = {
    "fit": {
        "--n-clusters": "-k",
        "--n_clusters": "-k",
        "--clusters": "-k",
        "--K=3": "-k",
        "--n-jobs": "--threads",
        "--output": "--out",
        "-o": "--out",
        "--random-state": "--seed",
        "--random-seed": "--seed",
        "--tolerance": "--tol",
        "--iterations": "--max-iter",
        "--max-iters": "--max-iter",
        "--nstart": "--n-init",
        "--features": "--columns",
        "--colums": "--columns",
        "-columns": "--columns",
        "--centroids": "--centers",
        "--label": "--labels",
        "--figure": "--plot",
        "--gpu": "--device cuda",
        "--float32": "--dtype float32",
        "--no-heading": "--no-header",
        "--help-me": "--help",
        "--scale": None,
        "--standardize": None,
        "--sep": None,
        "--delimiter": None,
        "--verbose": None,
        "--metric": None,
        "-x": None,
    },
    "predict": {"--output": "--out", "-k": None},
    "score": {"--sample-size": "--sample", "--plot": None},
    "quantize": {"--n-colors": "-k", "--colours": "-k", "--output": "--out"},
    "segment": {"--max-iter": "--iterations", "--clusters": "-k", "--algorithm": None},
}
PLACES = {
    "fit": "numbers.csv -k 2",
    "predict": "model.npz numbers.csv",
    "score": "numbers.csv numbers.csv",
    "quantize": "photo.png -k 2",
    "segment": "photo.png",
}


@pytest.fixture
def files(run, folder):
    (folder / "table.csv").write_text(TABLE)
    (folder / "numbers.csv").write_text(NUMBERS)
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n and more")
    np.savez(folder / "model.npz", header="{}", cluster_centers_=np.zeros((2, 2)))
    return folder


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{command} {rest}", says)
        for command, answers in ANSWERS.items()
        for rest, says in answers.items()
    ],
)
def test_answer(run, files, line, says):
    before = sorted(files.iterdir())
    ran = run(*line.split())
    assert (ran.status, ran.out) == (2, "")
    assert says in ran.err.replace('"', "")
    assert re.fullmatch(r"lloydia: [^\n]+[.?]\n", ran.err)
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [
        (command, option, meant)
        for command, options in OPTIONS.items()
        for option, meant in options.items()
    ],
)
def test_unknown_option(run, files, command, option, meant):
    ran = run(command, *PLACES[command].split(), option)
    hint = f"; did you mean {meant}?" if meant else ""
    given = option.partition("=")[0]
    see = f"(see lloydia {command} --help)."
    assert ran.err == f"lloydia: Unknown option: {given}{hint} {see}\n"


@pytest.mark.parametrize("words", ["help", "--help", "-h"])
def test_help(run, words):
    ran = run(*words.split())
    assert ran.status == 0
    assert ran.out.startswith("Usage: lloydia COMMAND")


@pytest.mark.parametrize("command", ["fit", "bench", "bench peers"])
def test_help_of_a_command(run, command):
    ran = run("help", *command.split())
    assert ran.out.startswith(f"Usage: lloydia {command} ")
    assert ran.out == run(*command.split(), "--help").out


@pytest.mark.parametrize("words", ["--version", "-V", "fit -V"])
def test_version(run, words):
    ran = run(*words.split())
    assert (ran.status, ran.out) == (0, f"{__version__}\n")
