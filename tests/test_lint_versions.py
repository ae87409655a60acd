"""`make lint` and pre-commit run the same versions of each linter."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / ".pre-commit-config.yaml"
HOOK = re.compile(r"repo: https://github[.]com/(\S+)\n +rev: (?:[0-9a-f]{40} # frozen: )?v(\S+)\n")
# Which package of the group `lint` a repository of hooks runs; None: it is not in the group.
PACKAGES = {
    "pre-commit/pre-commit-hooks": None,
    "astral-sh/ruff-pre-commit": "ruff",
    "pre-commit/mirrors-mypy": "mypy",
    "codespell-project/codespell": "codespell",
    "zizmorcore/zizmor-pre-commit": "zizmor",
    "rhysd/actionlint": None,
}


@pytest.mark.skipif(not CONFIG.exists(), reason="the source distribution has no hooks")
def test_hooks_and_the_group_lint_have_the_same_versions():
    hooks = dict(HOOK.findall(CONFIG.read_text(encoding="utf-8")))
    assert hooks.keys() == PACKAGES.keys()
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    group = dict(pin.split("==") for pin in groups["dependency-groups"]["lint"])
    assert group == {name: hooks[repo] for repo, name in PACKAGES.items() if name}
