# Every target sets up what it needs. Needed on the machine: make, and Python 3.11 or newer with its venv module.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/.installed
FAST := not flow and not slow and not thorough
REST := not slow and (flow or thorough)
# CrewAI has an environment of its own: its releases do not go together with those of google-adk and with pydantic's.
CREWAI := .venv-crewai
CREWAI_STAMP := $(CREWAI)/.installed
# So has the LangGraph server that ours is compared with.
ORACLE := .venv-oracle
ORACLE_STAMP := $(ORACLE)/.installed
# LangGraph's JavaScript client, and agent-chat-ui with what builds it: for tests alone.
NPM_STAMPS := tests/js/node_modules/.installed tests/chat_ui/node_modules/.installed
# Two workers: the machines that run this have two cores.
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup lint check test-fast test test-lowest test-crewai test-oracle test-openapi demo proto bench bench-recovery torture effects-torture load screenshots docs clean

help:
	@echo "make setup    create .venv, .venv-crewai (1 GB) and .venv-oracle, with all that developing needs"
	@echo "make check    lint, types, import contracts, fresh protocol, fast tests: under a minute"
	@echo "make test     what CI runs: check, then the tests on real servers with real kills"
	@echo "make test-crewai  the part of make test that needs CrewAI, in an environment of its own (1 GB)"
	@echo "make test-oracle  the part of make test that compares the HTTP API with the LangGraph server"
	@echo "make test-openapi  many generated requests to every route, where make test sends few"
	@echo "make test-lowest  the frameworks' tests with the oldest version of each that is supported"
	@echo "make demo     an agent, its host and Temporal are killed; it finishes all the same"
	@echo "make docs     these documents as a site in build/site, to be read and searched without a server"
	@echo "make proto    generate the protocol from proto/"
	@echo "make bench    milliseconds and bytes per super-step, against PostgresSaver and SqliteSaver"
	@echo "make bench-recovery  seconds from a loss to the first line of the next attempt"
	@echo "make load     200 streams and 500 threads at a time on one host, then on two: nothing is lost, memory is compared"
	@echo "make torture  ten minutes of kills under 50 threads, the slow tests, one thread through 5,000 super-steps"
	@echo "make screenshots  the pictures in docs/images, anew, from what Chromium shows"
	@echo "make effects-torture  1,000 random kills around agentvisor.once: nothing is duplicated"

# After it nothing asks the network again, the tests of CrewAI and those with the LangGraph server included.
setup: $(STAMP) $(CREWAI_STAMP) $(ORACLE_STAMP) $(NPM_STAMPS)

# The stamp is newer than pyproject.toml once everything is installed, so that nothing is asked of the network again.
$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "AgentVisor needs Python 3.11 or newer (set PYTHON=/path/to/python3)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { \
		rm -rf .venv; echo "cannot create .venv: on Debian and Ubuntu, apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[host,langgraph,dev]'
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/generate_protocol.py --check

# Side by side: most of lint has one thread.
check: $(STAMP)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint test-fast

test-fast: $(STAMP)
	$(BIN)/pytest -q -n $(JOBS) -m "$(FAST)"

# Native tracebacks: pytest's own parse the source, and CPython 3.11 aborts ("AST constructor recursion depth mismatch")
# where another thread of the test, a host's, prints a traceback at that moment. The run would end at its first failure.
# What fails beside others has to pass three times alone (docs/decisions/0011).
test: check $(ORACLE_STAMP) $(NPM_STAMPS)
	$(BIN)/pytest -q -n $(JOBS) --dist loadfile -m "$(REST)" --tb=native || $(BIN)/python scripts/run_alone.py $$?
	$(MAKE) test-crewai

$(CREWAI_STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "AgentVisor needs Python 3.11 or newer (set PYTHON=/path/to/python3)"; exit 1; }
	@test -x $(CREWAI)/bin/python || $(PYTHON) -m venv $(CREWAI)
	$(CREWAI)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[host,crewai]' \
		hypothesis langgraph-sdk pytest pytest-asyncio pytest-timeout pytest-xdist
	@touch $@

test-crewai: $(STAMP) $(CREWAI_STAMP)
	$(BIN)/basedpyright --project pyright-crewai.json
	$(CREWAI)/bin/python -m pytest -q -n $(JOBS) --dist loadfile --tb=native -o cache_dir=$(CREWAI)/.pytest_cache \
		tests/_crewai tests/flow/test_runner_contract.py

$(ORACLE_STAMP): tests/oracle/requirements.txt
	@test -n "$(PYTHON)" || { echo "AgentVisor needs Python 3.11 or newer (set PYTHON=/path/to/python3)"; exit 1; }
	@test -x $(ORACLE)/bin/python || $(PYTHON) -m venv $(ORACLE)
	$(ORACLE)/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/oracle/requirements.txt
	@touch $@

test-oracle: $(STAMP) $(ORACLE_STAMP)
	$(BIN)/pytest -q tests/oracle

# How many requests to each route.
EXAMPLES ?= 200

test-openapi: $(STAMP)
	OPENAPI_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -q --timeout 3600 tests/host/http/test_flow_openapi.py

# The oldest supported frameworks, in an environment of their own: what the bounds in pyproject.toml promise.
LOWEST := .venv-lowest
LOWEST_TESTS := tests/test_langgraph_contract.py tests/test_langgraph_graphs.py tests/_langgraph \
	tests/guest/runners tests/flow/test_interrupt.py tests/flow/test_several_questions.py \
	tests/flow/test_functional_api.py tests/flow/test_own_checkpointers.py tests/flow/test_running.py $(wildcard \
	tests/_strands tests/flow/test_strands*.py tests/flow/test_adk*.py tests/_adk tests/flow/test_openai_agents.py)

$(LOWEST)/.installed: pyproject.toml scripts/lowest_versions.py
	@test -n "$(PYTHON)" || { echo "AgentVisor needs Python 3.11 or newer (set PYTHON=/path/to/python3)"; exit 1; }
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python scripts/lowest_versions.py > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[host]' -r $(LOWEST)/requirements.txt
	@touch $@

# CrewAI's oldest in one of its own, as its newest.
LOWEST_CREWAI := .venv-lowest-crewai

$(LOWEST_CREWAI)/.installed: pyproject.toml scripts/lowest_versions.py
	@test -n "$(PYTHON)" || { echo "AgentVisor needs Python 3.11 or newer (set PYTHON=/path/to/python3)"; exit 1; }
	@test -x $(LOWEST_CREWAI)/bin/python || $(PYTHON) -m venv $(LOWEST_CREWAI)
	$(LOWEST_CREWAI)/bin/python scripts/lowest_versions.py crewai > $(LOWEST_CREWAI)/requirements.txt
	$(LOWEST_CREWAI)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[host]' \
		-r $(LOWEST_CREWAI)/requirements.txt
	@touch $@

test-lowest: $(LOWEST)/.installed $(LOWEST_CREWAI)/.installed
	$(LOWEST)/bin/python -m pytest -q -n $(JOBS) --dist loadfile -m "not slow" --tb=native $(LOWEST_TESTS)
	$(LOWEST_CREWAI)/bin/python -m pytest -q -n $(JOBS) --dist loadfile --tb=native \
		-o cache_dir=$(LOWEST_CREWAI)/.pytest_cache tests/_crewai tests/flow/test_runner_contract.py

# Where npm is not, the tests that need it say so and are skipped.
%/node_modules/.installed: %/package-lock.json
	@if command -v npm >/dev/null; then npm ci --prefix $* --ignore-scripts --no-audit --no-fund --loglevel=error && touch $@; \
		else echo "npm is not on this machine: the tests in $* will be skipped"; fi

demo: $(STAMP)
	$(BIN)/agentvisor demo

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "open build/site/index.html"

proto: $(STAMP)
	$(BIN)/python scripts/generate_protocol.py

bench: $(STAMP)
	$(BIN)/python benchmarks/superstep.py

bench-recovery: $(STAMP)
	$(BIN)/python benchmarks/recovery_time.py

load: $(STAMP)
	$(BIN)/python benchmarks/load.py

# How long, and which mix of kills.
MINUTES ?= 10
SEED ?= 1

torture: $(STAMP)
	$(BIN)/agentvisor torture --minutes $(MINUTES) --seed $(SEED) --threads 50 --hosts 2
	$(BIN)/pytest -q -m slow --timeout 1800
	$(BIN)/python benchmarks/long_thread.py
	$(BIN)/python benchmarks/storage_growth.py

effects-torture: $(STAMP)
	$(BIN)/python benchmarks/effects_torture.py

# By the tests that look at the same pages: a picture shows what they assert.
screenshots: $(STAMP) $(NPM_STAMPS)
	TEMPORAL_UI_PICTURES=docs/images $(BIN)/pytest -q tests/temporal_ui/test_temporal_ui.py
	CHAT_PICTURE=docs/images/agent-chat-ui.png $(BIN)/pytest -q tests/chat_ui

clean:
	rm -rf .venv $(LOWEST) $(LOWEST_CREWAI) $(CREWAI) $(ORACLE) $(dir $(NPM_STAMPS)) .pytest_cache .ruff_cache .hypothesis \
		.import_linter_cache build dist
