# Everything a newcomer or CI needs; `make help` lists it. Needs git, make and Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test long check format bench evaluation fuzz soak cluster integrations audit oldest docs lock clean

help: ## list these targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.installed ## make the environment in .venv, and Java if it is missing
	@scripts/ensure-java

demo: setup ## run the main job
	@$(BIN)/factor-windows demo

test: $(VENV)/.installed-dev setup ## install what tests need, and run all but the long ones
	@scripts/ensure-chromium
	@$(BIN)/pytest --numprocesses 2 --dist worksteal -m "not cluster and not long"

long: $(VENV)/.installed-dev setup ## the tests that take long: real data, kills, new processes, all zones, examples, more seeds
	@$(BIN)/pytest --numprocesses 2 --dist worksteal -m long tests

check: $(VENV)/.installed-dev ## format, lint, types, import direction, tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(MAKE) --no-print-directory test

format: $(VENV)/.installed-dev ## rewrite the code in the project's format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-dev setup ## measure a little, in a few minutes, and make a report of it in bench-report/
	@$(BIN)/python -m benchmarks --quick --fresh
	@$(BIN)/python -m benchmarks report --output bench-report

evaluation: $(VENV)/.installed-dev setup ## measure the whole evaluation, in about two hours, and write docs/benchmarks.md anew
	@$(BIN)/python -m benchmarks --results docs/benchmarks/results.jsonl
	@$(BIN)/python -m benchmarks --only dashboards --results docs/benchmarks/results.jsonl
	@$(BIN)/python -m benchmarks report --results docs/benchmarks/results.jsonl

fuzz: $(VENV)/.installed-dev setup ## look for differences in fresh generated cases, for MINUTES=5
	@$(BIN)/python tests/fuzz.py --minutes $(or $(MINUTES),5)

soak: $(VENV)/.installed-dev setup ## a hundred million events, a thousand windows, with 2 GB; memory watched, sums checked
	@FACTOR_WINDOWS_MEMORY=2g $(BIN)/python -m benchmarks --only soak --results docs/benchmarks/results.jsonl

cluster: $(VENV)/.installed-dev setup ## kill streams, executors, workers and drivers ten times; nothing is lost or doubled
	@FACTOR_WINDOWS_KILLS=10 FACTOR_WINDOWS_ROUNDS=10 $(BIN)/pytest -m "cluster or not cluster" \
	  tests/test_cluster.py tests/test_spark_stream.py -k "survives or killed"

integrations: $(VENV)-integrations/.installed ## the tests with Kafka, Delta, Iceberg and Connect, with a Spark that all of them exist for
	@scripts/ensure-java
	@scripts/ensure-jars
	@FACTOR_WINDOWS_INTEGRATIONS=1 $(VENV)-integrations/bin/pytest -o filterwarnings= --numprocesses 2 --dist loadfile \
	  --durations 10 tests/integrations

audit: ## look up the locked dependencies among known faults, where the database can be reached
	@$(PYTHON) -m venv $(VENV)-audit
	@$(VENV)-audit/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	@$(VENV)-audit/bin/python scripts/audit

oldest: setup ## the tests on Spark with the oldest PySpark that is supported, in an environment of its own
	@$(PYTHON) -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-oldest.lock
	@$(VENV)-oldest/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@FACTOR_WINDOWS_CASES=9 $(VENV)-oldest/bin/pytest -o filterwarnings= tests/test_spark_stream.py \
	  tests/test_spark_batch.py tests/test_sql_emit.py -k "not killed and not three_chains"

docs: $(VENV)/.installed-dev ## make the documentation site in site/; warnings are errors
	@$(BIN)/sphinx-build -q -W --keep-going docs site && echo "site/index.html"

lock: $(VENV)/.installed-dev ## choose the versions of all dependencies anew
	@$(BIN)/pip install --quiet uv
	@$(BIN)/uv pip compile pyproject.toml --group build --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-annotate --custom-compile-command "make lock" --quiet -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --group build --group dev --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-annotate --custom-compile-command "make lock" --quiet \
	  -c requirements.lock -o requirements-dev.lock
	@echo "pyspark==4.0.*" | $(BIN)/uv pip compile pyproject.toml --group build --group dev --universal \
	  --python-version 3.11 --upgrade --generate-hashes --no-annotate --custom-compile-command "make lock" --quiet \
	  --override - -o requirements-oldest.lock
	@echo "pyspark[connect,pipelines]==4.1.*" | $(BIN)/uv pip compile pyproject.toml --group build \
	  --group integrations --universal --python-version 3.11 --upgrade --generate-hashes --no-annotate \
	  --custom-compile-command "make lock" --quiet --override - -o requirements-integrations.lock

clean: ## remove the environments and all caches
	@rm -rf $(VENV) $(VENV)-audit $(VENV)-oldest $(VENV)-integrations jars .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# Hatchling is in the lock, so the project itself is built without fetching anything that is not.
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $(1) && \
  $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . && touch $@

$(VENV)/.installed: requirements.lock pyproject.toml | $(BIN)/pip
	@echo "installing into $(VENV) ..."
	@$(call INSTALL,requirements.lock)

$(VENV)/.installed-dev: requirements-dev.lock pyproject.toml | $(BIN)/pip
	@echo "installing into $(VENV), with what tests need ..."
	@$(call INSTALL,requirements-dev.lock)
	@touch $(VENV)/.installed

$(VENV)-integrations/.installed: requirements-integrations.lock pyproject.toml
	@echo "installing into $(VENV)-integrations ..."
	@$(PYTHON) -m venv $(VENV)-integrations
	@$(VENV)-integrations/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-integrations.lock
	@$(VENV)-integrations/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "factor-windows needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
