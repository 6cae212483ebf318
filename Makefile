# Everything from a fresh clone with Python 3.11 (or later) and make:
#   make demo   set up and run the demo          make test       set up, then lint, types, tests, doctests
#   make docs   build the documentation          make test-slow  the statistical tests, which take minutes
#   make bench  measure beside shap and shapiq   make bench-quick  minutes: fail if a ratio got much worse
#   make test-alone  every test file in a process of its own
#   make test-portable  the tests of sameness with the kernels of other CPUs, and how far numbers of one seed differ
#   make test-oldest  the quick tests with the oldest packages that pyproject.toml allows; test-newest with the newest ones,
#                     but for torch, whose newest build may bring gigabytes of CUDA: test-newest TORCH= takes that, too
#   make dist-test    build wheel and sdist, and try both in clean environments
#   make fuzz   ten minutes of odd tables, options, models, files and commands, other ones each time
#   make plots  draw every plot into docs/_build/plots
#   make format put the code in shape            make lint       only look at its shape, spelling and types
#   make clean  remove everything that make has made

PYTHON ?= $(firstword $(shell command -v python3.11 python3 python 2>/dev/null))
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e
WHAT := pyproject.toml constraints.txt
TORCH ?= $(shell sed -n 's/^torch==//p' constraints.txt)

.PHONY: demo test fuzz test-slow test-alone test-portable test-oldest test-newest dist-test bench bench-quick docs plots lint format clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.demo
	$(BIN)/condshap demo

test: lint
	$(BIN)/pytest -q -n 2
	$(BIN)/python tests/portable --quick

fuzz: $(VENV)/.dev
	$(BIN)/pytest tests/fuzz --hypothesis-profile=long --hypothesis-show-statistics

test-slow: $(VENV)/.dev
	$(BIN)/pytest -n 2 -m "slow or gpu"

# Status 5 of pytest: all tests of a file are slow.
test-alone: $(VENV)/.dev
	@failed=""; for file in $$(find tests -name 'test_*.py' | sort); do \
	  echo "$$file"; said=$$($(BIN)/pytest -q -p no:xdist "$$file" 2>&1); \
	  case $$? in 0|5) ;; *) echo "$$said" | tail -30; failed="$$failed $$file";; esac; \
	done; [ -z "$$failed" ] || { echo "These files fail alone:$$failed"; exit 1; }

test-portable: $(VENV)/.dev
	$(BIN)/python tests/portable

# Environments of their own, made again when pyproject.toml has changed.
test-oldest: .venv-oldest/.done
	.venv-oldest/bin/pytest -q -n 2 -p no:cacheprovider

test-newest: .venv-newest/.done
	.venv-newest/bin/pytest -q -n 2 -p no:cacheprovider

dist-test: $(VENV)/.dev
	$(BIN)/python tests/release

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks peers

bench-quick: $(VENV)/.dev
	$(BIN)/python -m benchmarks quick

docs: $(VENV)/.docs
	@echo "Running the examples and building the pages; that takes minutes ..."
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build
	@echo "Open docs/_build/index.html"

plots: $(VENV)/.dev
	$(BIN)/python docs/all_plots.py

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell src tests docs benchmarks *.md CITATION.cff
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .peers build dist demo-output docs/_build docs/auto_examples .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-ups: a stamp per extra, made again only when the requirements have changed.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(WHAT) | $(VENV)/bin/python
	@echo "Setting up $(VENV) for the demo; the first time takes some minutes ..."
	$(INSTALL) '.[demo]'
	@touch $@

$(VENV)/.dev: $(WHAT) | $(VENV)/bin/python
	@echo "Setting up $(VENV) for development; the first time takes some minutes ..."
	$(INSTALL) '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(WHAT) | $(VENV)/bin/python
	@echo "Setting up $(VENV) for the documentation; the first time takes some minutes ..."
	$(INSTALL) '.[docs]'
	@touch $@

.venv-oldest/.done: pyproject.toml tests/release/oldest.py
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) tests/release/oldest.py $(TORCH) > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install -q -c .venv-oldest/constraints.txt -e '.[dev]'
	@touch $@

.venv-newest/.done: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	echo '$(if $(TORCH),torch==$(TORCH))' > .venv-newest/constraints.txt
	.venv-newest/bin/python -m pip install -q -c .venv-newest/constraints.txt --upgrade --upgrade-strategy eager -e '.[dev]'
	@touch $@
