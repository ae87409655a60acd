"""Fuzz the readers of files, guided by coverage: ``python tests/fuzz/run.py [TARGET ...]``.

Needs atheris (``pip install atheris``).  Each target gets a process and an equal share of the
seconds; it begins with the seeds of its folder.  Bytes that are a finding stay in the folder
``findings``, and a later run with ``--keep`` goes on from the corpus of the one before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Fuzz the targets that are named, or all; return 1 if there was a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=int, default=600, help="for all targets together")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--keep", type=Path, help="folder of the corpora that grow")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent))
    if options.one:
        fuzz(options.targets[0], options)
        return 0
    from fuzz.targets import TARGETS

    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"there is no target {min(unknown)}: there are {', '.join(TARGETS)}")
    names = options.targets or list(TARGETS)
    share = max(1, options.seconds // len(names))
    options.findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        corpora = options.keep or Path(scratch)
        failed = [name for name in names if not succeeds(name, share, corpora, options.findings)]
    print(f"{len(names) - len(failed)} targets without a finding, {len(failed)} with: {failed}")
    return bool(failed)


def succeeds(name: str, seconds: int, corpora: Path, findings: Path) -> bool:
    """Fuzz one target in a process of its own."""
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    command += ["--keep", str(corpora), "--findings", str(findings)]
    return subprocess.run(command, check=False).returncode == 0


def fuzz(name: str, options: argparse.Namespace) -> None:
    """Run libFuzzer on one target; it ends the process."""
    import atheris

    # Numba compiles no code that was instrumented, so modules with kernels are imported before.
    for module in ("backends.cpu", "images.cube", "images.dither", "images.quality"):
        import_module(f"lloydia.{module}")
    with atheris.instrument_imports(include=["lloydia.data", "lloydia.images"]):
        from fuzz.targets import TARGETS
    target = TARGETS[name]
    corpus = options.keep / name
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        limits = {"max_total_time": options.seconds, "timeout": 30, "rss_limit_mb": 3000}
        limits |= {"max_len": 65_536, "print_final_stats": 1, "verbosity": 0}
        flags = [f"-{name}={value}" for name, value in limits.items()]
        flags += [f"-artifact_prefix={options.findings}/{name}-", str(corpus), str(target.seeds)]
        arguments = [sys.argv[0], *flags]
        atheris.Setup(arguments, lambda data: target(data, folder))
        atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
