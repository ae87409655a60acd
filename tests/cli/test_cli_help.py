"""Help texts: every command and every option has one, in plain sentences."""

import re

import pytest

COMMANDS = [
    *("fit", "predict", "score", "segment", "quantize", "demo", "warm-up", "info"),
    *("bench", "ladder"),
]
INNER = [
    *(f"bench {name}" for name in ("auto", "images", "peers", "report", "seeding")),
    *(f"ladder {name}" for name in ("dump", "list", "report", "run")),
]
# Words of programs as persons, and words that only this project uses.
VAGUE = (
    r"told|asked|asks|says|said|knows|takes part|come to|"
    r"written-up|peers are|figures|is no \w+|so many|most iterations|some of them"
)


def help_of(run, command):
    ran = run(*command.split(), "--help")
    assert ran.status == 0
    return " ".join(re.sub("[│╭╮╰╯─]", " ", ran.out).split())


@pytest.mark.parametrize("command", [*COMMANDS, *INNER])
def test_help_has_no_vague_word(run, command):
    assert not re.search(rf"\b({VAGUE})\b", help_of(run, command), re.IGNORECASE)


@pytest.mark.parametrize("command", [*COMMANDS[:8], *INNER])
def test_the_help_of_every_option_is_a_sentence(run, command):
    """Each option's text begins with a capital letter, or its first word, and ends with a stop."""
    ran = run(*command.split(), "--help")
    rows = re.findall(r"^│ [* ]?\s*[-A-Z].*(?:\n│\s{3,}\S.*)*", ran.out, re.MULTILINE)
    assert rows
    for row in rows:
        text = " ".join(re.sub("[│]", " ", row).split())
        assert re.search(r"\.( \[(required|choices: .*|default: .*)\])*$", text), text


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("fit", "--n-init INT|CHOICE Number of runs, each from a new start"),
        ("fit", "auto: 10 with --init random, else 1."),
        ("fit", "in the format of DATA: text (all else unchanged), .parquet, .arrow or .feather."),
        ("segment", "It reads every pixel and does all ITERATIONS."),
        ("ladder", "The documents are a thesis (T), a tutorial (A), a course project (B)"),
        ("ladder run", "and none for data of your own."),
        ("ladder dump", "as many first points are the initial centres."),
    ],
)
def test_help_states(run, command, text):
    assert text in help_of(run, command)
