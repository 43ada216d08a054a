# Everything is in two commands: `make quickstart` and `make test`.
PYTHON ?= python3.11
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# One thread for models of a few million parameters is the fastest; children inherit it.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM := false

.PHONY: install install-dev quickstart test check bench clean

install: $(VENV)/.installed

install-dev: $(VENV)/.installed-dev

# torch first and alone: what follows then keeps it instead of pulling a CUDA build of several GB.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing torch, then OpenForgeRL with its trainer (about 2 GB, a few minutes)"
	$(PIP) torch
	$(PIP) -e ".[train]"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) -e ".[train,dev]"
	@touch $@

quickstart: install
	$(BIN)/openforge quickstart

test: install-dev
	$(BIN)/python -m pytest

check: install-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

bench: install-dev
	$(BIN)/python -m bench.run

clean:
	rm -rf $(VENV) dist .pytest_cache .ruff_cache .import_linter_cache
