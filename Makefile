# `make demo` and `make test` are the two commands of the README; both make all that they need.

PYTHON ?= python3
VENV   ?= .venv
BIN     = $(abspath $(VENV))/bin
PEERS  ?= .venv-bench
ARGS   ?= --json build/bench-results.json --plot build/bench-results.svg

# The tests start hundreds of processes: where this is set, each compiles the generator anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test thorough lint fast bench golden docs clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

# The environment: what builds first, then what checks; tilesmith itself, editable, built against it.
$(VENV)/.builds: pyproject.toml
	@echo "== an environment in $(VENV), with the tools that pyproject.toml names: about a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --no-compile --group build
	@touch $@

$(VENV)/.ready: $(VENV)/.builds
	@$(BIN)/python -m pip install --quiet --no-compile --group dev
	@$(BIN)/python -m pip install --quiet --no-compile --group cuda || echo "no CUDA compiler: tests that need it are skipped"
	@touch $@

.PHONY: install build
install: $(VENV)/.ready build  ## the environment, with tilesmith built and installed editable

build: $(VENV)/.builds
	@echo "== the build: what has changed is proved, generated and compiled; all of it, seven to ten minutes on two cores"
	@PATH="$(BIN):$$PATH" $(BIN)/python build_tools/building.py \
		$(BIN)/python -m pip install --no-build-isolation --no-deps -e .

demo: install  ## build, and run the kernels on a photograph and on handwritten digits
	@echo "== the demo"
	@$(BIN)/python -m pip install --quiet --group demo
	$(BIN)/python demo/demo.py

lint: $(VENV)/.ready  ## ruff and mypy
	@echo "== style and types"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test:  ## everything that CI checks
	@$(MAKE) --jobs 2 build lint
	@echo "== the tests, on two cores: about fifteen minutes"
	PATH="$(BIN):$$PATH" $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

thorough: lint install  ## the tests on more kernels, levels and sizes: an hour or more
	PATH="$(BIN):$$PATH" $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --thorough

fast: lint  ## the generator's own tests, without a build
	$(BIN)/python -m pytest -n 2 tests --ignore tests/kernels --ignore tests/packaging

golden: install  ## write the goldens anew; look at the difference before you commit it
	PATH="$(BIN):$$PATH" $(BIN)/python -m pytest -n 2 --dist loadfile --update-golden

# The peers' own environment, with this checkout installed as a user would have it.
$(PEERS)/.ready: bench/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(PEERS)/bin/python -m pip install --quiet --group build
	$(PEERS)/bin/python -m pip install --quiet --retries 1 -r bench/requirements.txt
	touch $@

bench: $(PEERS)/.ready  ## side by side with the peers; ARGS="--quick", ARGS="compare HEAD~1 ." and so on
	PATH="$(abspath $(PEERS))/bin:$$PATH" $(PEERS)/bin/python -m pip install --quiet \
		--no-build-isolation --no-deps --force-reinstall -Cbuild-dir=build/bench .
	$(PEERS)/bin/python -m bench $(ARGS)

# Without --quiet, which would silence the warnings before they are counted.
docs: $(VENV)/.ready  ## the site of docs/, in build/site; a warning is an error
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m mkdocs build

clean:  ## build outputs and caches
	rm -rf build dist .cache
