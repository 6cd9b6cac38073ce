# Everything runs from a virtual environment of its own; the first target that needs it makes it.
PYTHON ?= python3
VENV ?= .venv
# PyTorch to develop with. Any torch>=2.9 serves: make TORCH="torch>=2.9" test
TORCH ?= torch==2.13.0
DEMO_OUT ?= egg-out/demo
JOBS ?= 2

BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types unit format clean

demo: $(READY)  ## make a kernel for RMSNorm + residual, offline
	rm -rf $(DEMO_OUT)
	$(BIN)/egg optimize examples/rmsnorm_residual.py --out $(DEMO_OUT) --budget 75s

test: lint types unit  ## what CI runs

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/basedpyright --pythonpath $(BIN)/python

unit: $(READY)
	$(BIN)/pytest -n $(JOBS) --dist loadfile

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable ".[cpu]" --group test --group lint
	touch $@

clean:
	rm -rf $(VENV) egg-out .pytest_cache .ruff_cache .hypothesis
