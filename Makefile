# Every target says what it does; `make help` lists them.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH := .venv-bench
CONSTRAINTS := infra/python/constraints.txt
STORE ?= .weft
# As it was given, whatever it is made of, but for ~: recipes take it from the environment, so that no shell reads it.
override STORE := $(value STORE)
override STORE := $(if $(filter ~ ~/%,$(firstword $(STORE))),$(subst ~~~,$(HOME),~~$(STORE)),$(STORE))
export STORE

# Compiled once, a module is read in a tenth of the time: of all those that a check imports, that is seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## list every target
	@awk -F':.*## ' '/^#: /{printf "\n%s\n", substr($$0, 4)} /^[a-z][a-z-]*:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

#: Use it
.PHONY: setup
setup: $(STAMP) ## make the environment in .venv, everything pinned

# torch comes first and alone: with it in place, no other package asks for a CUDA build of it.
$(STAMP): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' $(CONSTRAINTS))"
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable ".[all]"
	@touch $(STAMP)

.PHONY: run
run: setup ## run the whole loop on real input: index, search, feedback, learn, consolidate, measure
	$(BIN)/python -m jobs.demo --store "$$STORE"

.PHONY: mlflow
mlflow: setup ## open the MLflow UI on the store, http://127.0.0.1:5000
	$(BIN)/weft mlflow --store "$$STORE"

#: Work on it
.PHONY: test
test: setup ## run the test suite; what takes longer is behind eval, long, crash and bench-…
	@echo 'five parts side by side, twenty to thirty minutes on two cores: what one says comes when it is done'
	@$(MAKE) --no-print-directory --keep-going --jobs 5 --output-sync=target test_rest test_first test_second test_third test_fourth

# What starts clusters and brokers waits most of the time, so four such parts leave a core to what computes.
PROCESSES := tests/integration
FIRST := $(wildcard $(PROCESSES)/test_[a-f]*.py)
SECOND := $(wildcard $(PROCESSES)/test_[g-m]*.py)
THIRD := $(wildcard $(PROCESSES)/test_[n-r]*.py)

.PHONY: test_first
test_first:
	$(BIN)/python -m pytest -m "not slow" $(FIRST)

.PHONY: test_second
test_second:
	$(BIN)/python -m pytest -m "not slow" $(SECOND)

.PHONY: test_third
test_third:
	$(BIN)/python -m pytest -m "not slow" $(THIRD)

.PHONY: test_fourth
test_fourth:
	$(BIN)/python -m pytest -m "not slow" $(PROCESSES) $(addprefix --ignore=,$(FIRST) $(SECOND) $(THIRD))

.PHONY: test_rest
test_rest:
	$(BIN)/python -m pytest -m "not slow" $(addprefix --ignore=,$(PROCESSES))

.PHONY: check
check: setup ## format, lint, types, import contracts, unit tests and fewer examples of each law, in a minute
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=target check_unit check_laws check_static

.PHONY: check_static
check_static:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Of two parts that take about as long, each has a core; threads of products would only wait for one.
check_unit check_laws: export OMP_NUM_THREADS := 1
check_unit check_laws: export OPENBLAS_NUM_THREADS := 1
QUICK := $(BIN)/python -m pytest -m "not slow and not integration" --hypothesis-profile check
BESIDE_LAWS := $(addprefix tests/unit/,feedback learning lessons quality)

.PHONY: check_unit
check_unit:
	$(QUICK) tests/unit $(addprefix --ignore=,$(BESIDE_LAWS))

.PHONY: check_laws
check_laws:
	$(QUICK) tests/laws $(BESIDE_LAWS) pipelines

.PHONY: format
format: setup ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

#: Measure it, at length
.PHONY: eval
eval: setup ## measure retrieval on every collection under WEFT_DATA
	$(BIN)/python -m pytest -m "slow and data" -s tests/evaluation

LEADERS := tests/crash/test_broker_kill.py::test_what_was_acknowledged_counts_once_whichever_leader_dies

.PHONY: long
long: setup ## laws, references, hostile trees, odd requests and swaps at full length, in half an hour
	$(BIN)/python -m pytest -m "not slow" --hypothesis-profile long tests/laws
	$(BIN)/python -m pytest -m slow -s tests/laws tests/contracts tests/reference tests/integration tests/bench/test_event_to_effect.py \
	  tests/bench/test_ivfpq_recall.py tests/bench/test_linear_time.py tests/unit $(LEADERS) $(addprefix --ignore=,$(HOSTS))

HOSTS := $(PROCESSES)/test_two_hosts.py $(PROCESSES)/test_hosts_and_objects.py
.PHONY: fleet
fleet: setup ## run on two hosts with networks and disks of their own; needs root and iproute2
	$(BIN)/python -m pytest -m slow -s $(HOSTS)

.PHONY: bench-ingest
bench-ingest: $(BENCH)/.installed ## measure ingestion beside its own models, Haystack and LlamaIndex, in 40 minutes
	$(BIN)/python -m pytest -m slow -s tests/bench/test_ingest_throughput.py tests/bench/test_ingest_memory.py tests/bench/test_precisions.py

# The others' packages come on top of this project's environment, so that all share one torch, and none of it changes.
$(BENCH)/.installed: $(STAMP) infra/python/bench.txt
	$(PYTHON) -m venv $(BENCH)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
	  > "$$($(BENCH)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/project.pth"
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check --requirement infra/python/bench.txt
	@touch $@

.PHONY: crash
crash: setup ## kill ingestion, the updater and nights at many random points and compare the bits
	$(BIN)/python -m pytest -m "slow and crash" -s tests/crash

.PHONY: bench-feedback
bench-feedback: $(BENCH)/.installed ## measure an updater beside a bare poll loop on both brokers, and beside Quix Streams
	$(BIN)/python -m pytest -m slow -s tests/bench/test_updater_throughput.py

.PHONY: bench-duplicates
bench-duplicates: $(BENCH)/.installed ## measure the search for near-duplicates beside SemHash, and among a million texts
	$(BIN)/python -m pytest -m slow -s tests/bench/test_near_duplicates.py

.PHONY: bench-night
bench-night: setup ## measure a night over 30,000 and 100,000 contents (WEFT_NIGHT says how many), step by step
	$(BIN)/python -m pytest -m slow -s tests/bench/test_night_growth.py

.PHONY: bench-growth
bench-growth: setup ## measure what indexing costs from 200,000 to 1,600,000 contents (WEFT_GROWTH says how many), in an hour
	$(BIN)/python -m pytest -m slow -s tests/bench/test_index_growth.py

.PHONY: bench-week
bench-week: setup ## live through a week of nights over two releases of five documentations, in an hour
	$(BIN)/python -m pytest -m slow -s tests/evaluation/test_week.py

.PHONY: bench-cli
bench-cli: setup ## measure how long the command line takes, on the standard library, in ten minutes
	$(BIN)/python -m pytest -m slow -s tests/bench/test_command_line.py

.PHONY: bench-search
bench-search: $(BENCH)/.installed ## measure searches of 100,000 chunks, beside Pyserini's hybrid searcher and txtai's, in an hour
	$(BIN)/python -m pytest -m slow -s tests/bench/test_search_beside_feedback.py \
	  tests/bench/test_hostile_queries.py tests/bench/test_search_speed.py tests/bench/test_words_cost.py

.PHONY: bench-serve
bench-serve: $(BENCH)/.installed ## measure the service over 100,000 chunks beside Pyserini's: speed with eight clients, memory, in an hour
	$(BIN)/python -m pytest -m slow -s tests/bench/test_service_speed.py

.PHONY: bench-shards
bench-shards: setup ## measure searches of four shards on Ray Serve beside one of the same contents, in ten minutes
	$(BIN)/python -m pytest -m slow -s tests/bench/test_served_shards.py

#: Write made files anew
.PHONY: schema
schema: setup ## write the JSON Schema of feedback events anew
	$(BIN)/weft feedback schema > infra/kafka/feedback.schema.json

.PHONY: reference
reference: setup ## write anew what applications import, and the list of ports
	$(BIN)/python -m tests.support.reference

.PHONY: licences
licences: setup ## write anew the licences of all that an installation brings
	$(BIN)/python -m tests.support.licences

.PHONY: recording
recording: setup ## record anew the picture of the README, from a real run, in a minute
	$(BIN)/python -m tests.support.recording

.PHONY: screenshots
screenshots: setup ## take the pictures of the console anew, of a real run in Chromium, in three minutes
	$(BIN)/python -m tests.support.console_pictures

.PHONY: requirements
requirements: setup ## write anew which tests show each requirement
	$(BIN)/python -m tests.support.requirements

#: Tidy up
.PHONY: clean
clean: ## remove what runs leave behind, not the environment
	rm -rf -- "$$STORE" .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
