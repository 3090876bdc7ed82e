# Two commands that need nothing but Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint types unit format fuzz docs benchmark clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       score the sample task, write reports/demo/index.html, print the leaderboard"
	@echo "make test       lint, types and all tests"
	@echo "make benchmark  this project and its peers on the same work"
	@echo "make fuzz       the readers against random bytes, for a minute"
	@echo "make docs       put into README and docs what their commands print now"

# The environments are made anew when what they install changes.
$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "fairevals needs Python 3.11 or later, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed
	@$(BIN)/fairevals demo --data . -o reports/demo

test: lint types unit

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/installed-dev
	$(BIN)/mypy

unit: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n auto

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# With atheris (pip install -e '.[fuzz]') guided by coverage, without it at random.
fuzz: $(VENV)/installed-dev
	$(BIN)/python fuzz/readers.py -max_total_time=60

benchmark: $(VENV)/installed-dev
	$(BIN)/python benchmarks/scoring.py
	$(BIN)/python benchmarks/plackett_luce.py
	$(BIN)/python benchmarks/groups.py
	$(BIN)/python benchmarks/report.py

# The numbers and outputs in the README and the docs, as the commands print them now.
docs: $(VENV)/installed-dev
	$(BIN)/python docs/make_measures.py --update
	$(BIN)/python docs/console.py --update README.md docs/*.md

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
