# Everything runs in .venv, which is made once and brought up to date when pyproject.toml changes.
#   make test PYTHON=python3.13       choose the interpreter (only asked when .venv is made)
#   make test ARGS="tests/cli -x"     hand arguments on to the command

PYTHON ?= $(shell command -v python3 || command -v python || echo python3)
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed.stamp
KERNELS := $(VENV)/kernels.stamp
PACKAGE := $(VENV)/package.stamp
DOCS := $(VENV)/docs.stamp

# What the documentation's build writes among its sources.
GENERATED := docs/gallery docs/api/generated docs/benchmarks/results docs/commands/reference docs/sg_execution_times.rst

.DEFAULT_GOAL := help
.PHONY: help demo test quick fuzz gpu-tests lint package docs bench install clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## cluster a photograph and two tables; pictures go to demo/
	$(BIN)/lloydia demo $(ARGS)

test: $(KERNELS) ## run the tests, a file at a time on each core (ARGS="-n 0 --pdb": one by one)
	$(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 0 $(ARGS)

quick: $(STAMP) ## run the tests that take a moment: none of GPU kernels, none that kill processes
	$(BIN)/python -m pytest -n auto --dist loadfile --max-worker-restart 0 \
	  -m 'not (slow or interpreter or gpu or kill)' --ignore tests/gpu --ignore tests/backends/cuda $(ARGS)

fuzz: $(STAMP) ## feed damaged files to every reader, for ten minutes (ARGS="csv --seconds 60")
	$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python tests/fuzz/run.py $(ARGS)

gpu-tests: $(KERNELS) ## run the tests that need a GPU, a few at a time: most of it is compiling kernels
	$(BIN)/python -m pytest tests/gpu -n auto --maxprocesses 8 $(ARGS)

lint: $(STAMP) ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

package: $(PACKAGE) ## build the source distribution and the wheel into dist/, and inspect them
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/pyroma --min 8 dist/*.tar.gz
	$(BIN)/validate-pyproject pyproject.toml
	$(BIN)/sp-repo-review .
	$(BIN)/zizmor --quiet --offline .github

docs: $(DOCS) ## build the documentation into build/docs (ARGS="-D plot_gallery=0": without running the gallery)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs build/docs $(ARGS)
	$(BIN)/python docs/links.py build/docs

bench: $(STAMP) ## time against scikit-learn and other libraries (ARGS=--save keeps the figures)
	$(BIN)/lloydia bench peers $(ARGS)
	$(BIN)/python benchmarks/startup.py $(ARGS)

install: $(STAMP) ## make .venv with Lloydia, its extras and the developers' tools

clean: ## remove everything that make made, .venv included
	rm -rf $(VENV) $(GENERATED) demo build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group dev --editable '.[all]'
	@touch $@

$(PACKAGE): $(STAMP)
	$(BIN)/python -m pip install --quiet --group package
	@touch $@

$(DOCS): $(STAMP)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

# With a GPU the extra, else PyTorch's CPU build, whose kernels run in an interpreter.  A PyTorch that is
# there already stays.
$(KERNELS): $(STAMP)
	@if $(BIN)/python -c 'import torch, triton' 2>/dev/null; then :; \
	elif command -v nvidia-smi >/dev/null; then $(BIN)/python -m pip install --quiet --editable '.[gpu,ladder]'; \
	else $(BIN)/python -m pip install --quiet --group interpreter || \
	  echo "make: there is no CPU build of PyTorch to install: tests of GPU kernels are skipped (see CONTRIBUTING.md)" >&2; \
	fi
	@touch $@

$(BIN)/python:
	@command -v '$(PYTHON)' >/dev/null || { \
	  echo "make: there is no '$(PYTHON)' here: install Python 3.11 or newer, or name one with PYTHON=..." >&2; \
	  exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: '$(PYTHON)' is $$('$(PYTHON)' -V 2>&1), and Lloydia needs 3.11 or newer: name another with PYTHON=..." >&2; \
	  exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' comes without venv: install it (Debian, Ubuntu: apt install python3-venv), or name another Python with PYTHON=..." >&2; \
	  exit 1; }
	'$(PYTHON)' -m venv --clear $(VENV)
