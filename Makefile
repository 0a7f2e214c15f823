# Everything a fresh machine needs: Python 3.11+, Java 17+ and make. `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
# Spark finds its Python workers by this; unset, it would take the python3 on the PATH.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)

.PHONY: help demo test unit parity lint format types bench clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

demo: .venv/run  ## a real broker, a producer, a streaming query whose rows and lag one can watch
	$(BIN)/python -m spark_kafka_source.demo

test: lint types .venv/test  ## everything that CI runs
	$(BIN)/python -m pytest -m "not parity_full"

unit: .venv/test  ## the tests without network and JVM, in seconds
	$(BIN)/python -m pytest

parity: .venv/test  ## the scenarios of Spark's own Kafka suites, with both formats, and a table
	$(BIN)/python -m pytest -m "" tests/parity --parity-table build/parity.md

lint: .venv/test  ## style
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: .venv/test  ## put the code into the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: .venv/test  ## mypy, strictly
	$(BIN)/mypy

bench: .venv/test  ## batch scan against Spark's own connector, interleaved, and the ratio
	$(BIN)/python -m tests.benchmarks.scan

clean:  ## remove what was built and installed here
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or newer is needed, this is " + sys.version'
	$(PYTHON) -m venv .venv

.venv/run: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . 'pyspark==4.2.0'
	touch $@

.venv/test: .venv/run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,dev]'
	touch $@
