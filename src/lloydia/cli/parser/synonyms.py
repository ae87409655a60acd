"""Other words for commands and options: those of scikit-learn, R and other programs."""

from __future__ import annotations

# Each word, without the hyphens at its beginning, and the options that mean the same, of which a
# command has the first one that it has.  A word with no entry here, and near no name, is met by no
# proposal: one that is wrong costs more than none.
OPTIONS: dict[str, tuple[str, ...]] = {
    "n-clusters": ("-k",),
    "num-clusters": ("-k",),
    "nclusters": ("-k",),
    "clusters": ("-k",),
    "cluster": ("-k",),
    "n-colors": ("-k",),
    "n-colours": ("-k",),
    "colors": ("-k",),
    "colours": ("-k",),
    "n-segments": ("-k",),
    "segments": ("-k",),
    "random-state": ("--seed",),
    "n-jobs": ("--threads",),
    "jobs": ("--threads",),
    "cores": ("--threads",),
    "tolerance": ("--tol",),
    "epsilon": ("--tol",),
    "max-iter": ("--max-iter", "--iterations"),
    "max-iterations": ("--max-iter", "--iterations"),
    "iterations": ("--max-iter", "--iterations"),
    "n-iter": ("--max-iter", "--iterations"),
    "niter": ("--max-iter", "--iterations"),
    "nstart": ("--n-init",),
    "restarts": ("--n-init",),
    "runs": ("--n-init",),
    "features": ("--columns",),
    "usecols": ("--columns",),
    "fields": ("--columns",),
    "centroids": ("--centers",),
    "cluster-centers": ("--centers",),
    "picture": ("--plot",),
    "figure": ("--plot",),
    "initial": ("--init",),
    "precision": ("--dtype",),
    "float32": ("--dtype float32",),
    "float64": ("--dtype float64",),
    "gpu": ("--device cuda",),
    "cuda": ("--device cuda",),
    "cpu": ("--device cpu",),
    "o": ("--out", "--labels"),
    "out": ("--out", "--labels"),
    "output": ("--out", "--labels"),
    "sample-size": ("--sample",),
    "overwrite": ("--force",),
}

# Other words for values of options, beside those of lloydia.parameters.
VALUES = {"double": "float64", "single": "float32", "gpu": "cuda", "nvidia": "cuda"}

# Options that mean the file that a command takes by its place.
FILES = frozenset({"data", "file", "filename", "image", "input", "path"})

COMMANDS = {
    "cluster": "fit",
    "kmeans": "fit",
    "k-means": "fit",
    "run": "fit",
    "train": "fit",
    "assign": "predict",
    "transform": "predict",
    "evaluate": "score",
    "metrics": "score",
    "silhouette": "score",
    "palette": "quantize",
    "quantise": "quantize",
    "benchmark": "bench",
    "v": "--version",
    "version": "--version",
    "completion": "--install-completion",
}
