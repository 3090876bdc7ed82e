# Two commands that need nothing but Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 1
OPTIONS ?=
# Compiled modules are kept, also where the environment says otherwise: the tests start many processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test thorough lint types unit format fuzz docs picture sample benchmark clean
.PHONY: experiment-simulated experiment-german experiment-rewards
.DEFAULT_GOAL := help

help:
	@echo "make demo       score the sample task, write reports/demo/index.html, print the leaderboard"
	@echo "make test       lint, types and all tests"
	@echo "make thorough   the same with more cases, for about half an hour"
	@echo "make format     format the code and fix what lint can fix"
	@echo "make docs       update the outputs in README, docs and notebooks"
	@echo "make picture    draw docs/report.png, the picture of the report in the README, again"
	@echo "make sample     write the sample task and its archive in the package again"
	@echo "make benchmark  measure this project and its peers on the same work"
	@echo "make fuzz       run the readers on random bytes and whole commands on changed calls, for five minutes"
	@echo "Experiments of papers, written to reports/ (add OPTIONS=--quick for a short run):"
	@echo "make experiment-simulated"
	@echo "make experiment-german GERMAN=german.data"
	@echo "make experiment-rewards TRAIN=train.letor.gz TEST=test.letor.gz [VALID=valid.letor.gz]"

# The environment is installed again when pyproject.toml changes.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "fairevals needs Python 3.11 or later, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: pyproject.toml | $(VENV)/created
	@$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/created
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $(VENV)/installed $@

demo: $(VENV)/installed
	@$(BIN)/fairevals demo --data . -o reports/demo

# mypy uses one core, so it runs beside the tests.
test: lint
	@$(MAKE) --no-print-directory -j2 types unit

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/installed-dev
	$(BIN)/mypy

# One thread for matrices, because the tests use all cores. Without numba's compiler, which ranx needs a minute of.
unit: $(VENV)/installed-dev
	OPENBLAS_NUM_THREADS=1 NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m "not thorough"

# All cases of the large matrices too (every fault on every command, the training of the sample runs), and five times as
# many examples of every property.
thorough: lint types
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --hypothesis-profile thorough

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The readers: guided by coverage with atheris (pip install -e '.[fuzz]'), at random without.
fuzz: $(VENV)/installed-dev
	$(BIN)/python fuzz/readers.py -max_total_time=60
	$(BIN)/python fuzz/commands.py -max_total_time=240

benchmark: $(VENV)/installed-dev
	$(BIN)/python benchmarks/scoring.py
	$(BIN)/python benchmarks/plackett_luce.py
	$(BIN)/python benchmarks/groups.py
	$(BIN)/python benchmarks/reranking.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/limits.py
	$(BIN)/python benchmarks/annotate.py

# Run the commands in the README and the docs and the cells of the notebooks, and put in what they print.
docs: $(VENV)/installed-dev
	$(BIN)/python docs/make_measures.py --update
	$(BIN)/python docs/console.py --update README.md docs/*.md
	$(BIN)/python docs/notebooks.py --update examples/*.ipynb

# The report of the sample in Chromium, as the README shows it.
picture: $(VENV)/installed-dev
	$(BIN)/python docs/picture.py

# Deterministic: the same bytes every time.
sample: $(VENV)/installed-dev
	$(BIN)/python -m tools.sample

experiment-simulated: $(VENV)/installed
	$(BIN)/python -m experiments fair-pg-rank-simulated --jobs $(JOBS) $(OPTIONS) -o reports/simulated

experiment-german: $(VENV)/installed
	$(BIN)/python -m experiments fair-pg-rank-german $(GERMAN) --jobs $(JOBS) $(OPTIONS) -o reports/german

experiment-rewards: $(VENV)/installed
	@test -n "$(TRAIN)" -a -n "$(TEST)" || { echo "give TRAIN=train.letor.gz TEST=test.letor.gz" >&2; exit 2; }
	$(BIN)/python -m experiments bandit-rank-rewards $(TRAIN) $(VALID) $(TEST) --jobs $(JOBS) $(OPTIONS) -o reports/rewards

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
