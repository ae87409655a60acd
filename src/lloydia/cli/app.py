"""The commands, under one name."""

from __future__ import annotations

from cyclopts import App

from lloydia.cli.bench import bench
from lloydia.cli.bench_images import images
from lloydia.cli.compilation.warm_up import warm_up
from lloydia.cli.demo import demo
from lloydia.cli.fit import fit
from lloydia.cli.images.quantize import quantize
from lloydia.cli.images.segment import segment
from lloydia.cli.info import info
from lloydia.cli.ladder import ladder
from lloydia.cli.parser.completion import install_completion
from lloydia.cli.predict import predict
from lloydia.cli.score import score
from lloydia.version import __version__

HELP = """k-means clustering, with the same result on any number of threads, on CPUs and GPUs.

Example: lloydia fit table.csv -k 3 --labels labels.csv --plot clusters.png
"""

app = App(name="lloydia", version=__version__, version_flags=["--version", "-V"], help=HELP)
app.command(install_completion, name="--install-completion")
for command in (fit, predict, score, segment, quantize, demo, warm_up, info):
    app.command(command)
bench.command(images)
app.command(bench)
app.command(ladder)
