"""`lloydia info`: versions, devices, caches of compiled kernels, and what an engine chooses."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from lloydia.cli.compilation.folders import numba_folder, triton_folder
from lloydia.cli.options import Json
from lloydia.cli.report import print_json
from lloydia.data.numbers import whole_number
from lloydia.version import __version__

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "torch", "triton")
# What the processor can do that kernels on it use, the most recent last.
INSTRUCTIONS = ("sse4.2", "neon", "avx2", "avx512f", "avx512vnni", "avx512bf16", "amx-bf16")


class Shape(NamedTuple):
    """The shape of data: rows, features, clusters."""

    rows: int
    features: int
    clusters: int


class Capability(NamedTuple):
    """The compute capability of a GPU."""

    major: int
    minor: int


def shape_of(_: type, tokens: Sequence[Any]) -> Shape:
    """Convert ROWS,FEATURES,CLUSTERS."""
    words = tokens[0].value.split(",")
    if len(words) != 3:
        raise ValueError(
            f"{tokens[0].value!r} is not ROWS,FEATURES,CLUSTERS, such as 1000000,64,256"
        )
    found = Shape(*(whole_number(word) for word in words))
    for name, size in found._asdict().items():
        if size < 1:
            raise ValueError(f"{tokens[0].value!r} has {size} {name}; at least one is needed")
    if found.clusters > found.rows:
        raise ValueError(
            f"{found.clusters} clusters of {found.rows} rows: there are at most as many clusters "
            "as rows"
        )
    return found


def capability_of(_: type, tokens: Sequence[Any]) -> Capability:
    """Convert MAJOR.MINOR."""
    found = re.fullmatch(r"(\d+)\.(\d+)", tokens[0].value)
    if not found:
        raise ValueError(f"{tokens[0].value!r} is not a compute capability, such as 9.0")
    return Capability(int(found[1]), int(found[2]))


def info(
    *,
    shape: Annotated[
        Shape | None,
        Parameter(
            name="--shape",
            converter=shape_of,
            n_tokens=1,
            accepts_keys=False,
            help="ROWS,FEATURES,CLUSTERS: also print what each engine chooses for such data.",
        ),
    ] = None,
    dtype: Annotated[
        Literal["float32", "float64"], Parameter(help="The type of that data's numbers.")
    ] = "float32",
    capability: Annotated[
        Capability | None,
        Parameter(
            name="--capability",
            converter=capability_of,
            n_tokens=1,
            negative=(),
            accepts_keys=False,
            help="MAJOR.MINOR: with --shape, choose kernels for a GPU of this compute capability, "
            "such as 9.0; by default for the first GPU here, or 9.0 (Hopper) without one.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print versions, devices, caches of compiled kernels, and what an engine chooses for a shape.

    Example: lloydia info --shape 1000000,64,256
    """
    if capability is not None and shape is None:
        raise ValueError("--capability needs a shape to choose kernels for: add --shape.")
    facts: dict[str, Any] = {
        "versions": versions(),
        "cpu": cpu(),
        "gpus": gpus(),
        "caches": caches(),
    }
    if shape is not None:
        itemsize = 8 if dtype == "float64" else 4
        facts["cpu_choices"] = cpu_choices(shape, itemsize)
        facts |= gpu_choices(shape, itemsize, capability)
    if json:
        print_json(facts)
        return
    for line in lines(facts):
        print(line)


def versions() -> dict[str, str | None]:
    """Return the versions of Lloydia, Python and what it stands on; None of what is not there."""
    found: dict[str, str | None] = {"lloydia": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        found[name] = None
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def cpu() -> dict[str, Any]:
    """Return the processor, the threads that this process may use, and the instructions."""
    from llvmlite import binding

    from lloydia.backends.cpu.runtime.pool import available_threads

    known = binding.get_host_cpu_features()
    return {
        "machine": platform.machine(),
        "processor": binding.get_host_cpu_name(),
        "threads": available_threads(),
        "instructions": [name for name in INSTRUCTIONS if known.get(name)],
    }


def gpus() -> list[dict[str, Any]]:
    """Return the GPUs that PyTorch finds: none without it."""
    try:
        import torch
    except ImportError:
        return []
    found = []
    for i in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(i)
        found.append(
            {
                "device": f"cuda:{i}",
                "name": about.name,
                "capability": f"{about.major}.{about.minor}",
                "bytes": about.total_memory,
            }
        )
    return found


def caches() -> list[dict[str, Any]]:
    """Return the folders that compiled kernels are stored in, and their sizes."""
    found: list[tuple[str, Path, tuple[str, ...]]] = []
    # Where there is no place to store them, kernels are compiled in every process.
    with suppress(RuntimeError, OSError):
        found.append(("Numba", numba_folder(), ("*.nbi", "*.nbc")))
    with suppress(ImportError):
        found.append(("Triton", triton_folder(), ("*",)))
    return [
        {"kernels": name, "folder": str(folder), "bytes": bytes_in(folder, patterns)}
        for name, folder, patterns in found
    ]


def bytes_in(folder: Path, patterns: Sequence[str]) -> int:
    """Return what the files in a folder take whose names are like one of some; 0 without it."""
    size = 0
    for pattern in patterns:
        for path in folder.rglob(pattern):
            # Another process may remove it meanwhile.
            with suppress(OSError):
                if path.is_file():
                    size += path.stat().st_size
    return size


def cpu_choices(shape: Shape, itemsize: int) -> list[dict[str, str]]:
    """Return what the engine on the processor chooses for dense rows without weights."""
    from lloydia.backends.cpu.choices import choices

    return [named(*choice) for choice in choices(*shape, itemsize)]


def gpu_choices(shape: Shape, itemsize: int, capability: tuple[int, int] | None) -> dict[str, Any]:
    """Return what the engine on a GPU chooses for rows without weights, and for which GPU.

    Without Triton the choices are None.
    """
    try:
        from lloydia.backends.cuda.dispatch import choices, work_of
        from lloydia.backends.cuda.runtime.hopper import first_capability
    except ImportError:
        return {"gpu_choices": None}
    major, minor = capability or first_capability()
    work = work_of(*shape, itemsize, (major, minor))
    found = [named(stage, case.kernels, case.why) for stage, case in choices(work)]
    return {"gpu_capability": f"{major}.{minor}", "gpu_choices": found}


def named(stage: str, choice: str, why: str) -> dict[str, str]:
    """Return a choice as a fact."""
    return {"stage": str(stage), "choice": str(choice), "why": why}


# -- as text ------------------------------------------------------------------------------------


def lines(facts: dict[str, Any]) -> Iterator[str]:
    """Give the facts line by line."""
    found = facts["versions"].items()
    yield "Versions"
    yield from columns((name, number or "not installed") for name, number in found)
    yield from ("", "Processor")
    about = facts["cpu"]
    yield from columns(
        [
            ("kind", f"{about['processor']} ({about['machine']})"),
            ("threads", str(about["threads"])),
            ("instructions", ", ".join(about["instructions"]) or "none that kernels look for"),
        ]
    )
    yield from ("", "GPUs")
    yield from columns(
        (gpu["device"], f"{gpu['name']}, compute capability {gpu['capability']}, {size(gpu)}")
        for gpu in facts["gpus"]
    )
    if not facts["gpus"]:
        torch = facts["versions"]["torch"]
        missing = "PyTorch is missing; GPUs need it and Triton: pip install torch triton."
        yield "  PyTorch finds none." if torch else f"  {missing}"
    yield from ("", "Compiled kernels")
    yield from columns((one["kernels"], f"{one['folder']}, {size(one)}") for one in facts["caches"])
    on_gpu = "On a GPU"
    if "gpu_capability" in facts:
        on_gpu += f" of compute capability {facts['gpu_capability']}"
    for title, key in (("On the processor", "cpu_choices"), (on_gpu, "gpu_choices")):
        if key in facts:
            yield from ("", title)
            yield from chosen(facts[key])


def chosen(found: list[dict[str, str]] | None) -> Iterator[str]:
    """Give choices line by line, each with its reason."""
    if found is None:
        yield "  The GPU engine needs PyTorch and Triton: pip install torch triton."
        return
    for one in found:
        yield f"  {one['stage']}: {one['choice']}"
        yield f"    {one['why']}"


def columns(pairs: Any) -> Iterator[str]:
    """Give pairs of words in two columns."""
    listed = list(pairs)
    width = max((len(name) for name, _ in listed), default=0)
    for name, text in listed:
        yield f"  {name:<{width}}  {text}"


def size(about: dict[str, Any]) -> str:
    """Return the bytes of something in words."""
    from lloydia.data.chunks.memory import spell

    return spell(about["bytes"])
