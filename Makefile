# Surefoot's tasks. `make help` lists them. Needs Python 3.11 or newer, git and GNU make; everything else is
# installed into .venv at the pinned versions.

PYTHON ?= python3
SECONDS_TO_TRAIN ?= 180
SEED ?= 0
PYTEST_ARGS ?=

BIN := .venv/bin
STAMP := .venv/.installed
SOURCES := $(wildcard src tests benchmarks examples docs/figures)

# Every `make walk` gets a folder of its own; `runs/latest` points to the newest. RUN=... chooses one.
ifndef RUN
RUN := runs/walk-$(shell date +%Y%m%d-%H%M%S)
endif

.DEFAULT_GOAL := help
.PHONY: help venv walk test check bench learn format clean

help:  ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

venv: $(STAMP)  ## create .venv with everything, at the pinned versions

# The stamp is written last, so that an interrupted installation starts again.
$(STAMP): requirements/run.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'Surefoot needs Python 3.11 or newer; $(PYTHON) is missing or older. Choose one: make PYTHON=python3.11' >&2; \
	  exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -r requirements/dev.txt
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@touch $@

walk: $(STAMP)  ## train the quadruped (SECONDS_TO_TRAIN=180), evaluate it, film it, write the report
	$(BIN)/surefoot train quadruped-flat --seconds $(SECONDS_TO_TRAIN) --seed $(SEED) --run-dir $(RUN)
	@ln -sfn "$(abspath $(RUN))" runs/latest
	$(BIN)/surefoot evaluate $(RUN) --episodes 64 --json > $(RUN)/evaluation.json
	@cat $(RUN)/evaluation.json
	$(BIN)/surefoot play $(RUN) --video $(RUN)/video.mp4
	$(BIN)/surefoot report $(RUN)
	@echo 'The trained robot, its video and its report are in $(RUN), also reached as runs/latest.'

test: $(STAMP)  ## run the tests (PYTEST_ARGS=... is passed on)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(STAMP)  ## formatting, lint, types and import rules
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache --no-logo

bench: $(STAMP)  ## measure speed; wants an idle machine
	$(BIN)/python benchmarks/quadruped_speed.py

learn: $(STAMP)  ## tests that train to a target; minutes
	$(BIN)/python -m pytest -m learning $(PYTEST_ARGS)

format: $(STAMP)  ## rewrite the sources in the project's format
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

clean:  ## remove .venv and caches; runs/ stays
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
