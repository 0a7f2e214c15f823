# Everything a fresh machine needs: Python 3.11+, Java 17+ and make. `make help` lists the targets.
PYTHON ?= python3
BIN := .venv/bin
# The newest whose Kafka connector, the peer, can be had; all targets but test-matrix, test-python and
# test-newest use it.
PYSPARK := 4.2.0
# What test-matrix tries, each in its newest patch release and an environment of its own.
SPARK ?= 4.0 4.1 4.2 4.3
# How many files of tests run side by side. Tests often wait: two cores serve three workers.
WORKERS ?= 3
# How long `make fuzz` takes for each of its TARGETS, all of them where none is named.
SECONDS ?= 60
# The environment of `make test-python` and `make test-newest`, and its Spark.
OTHER := .venv-$(notdir $(PYTHON))
NEWEST_SPARK := 4.3
# How long `make soak` takes.
HOURS ?= 1
# Each run of it has a seed of its own, unless SEED is given.
SOAK_SEED = $(if $(filter command environment,$(origin SEED)),--seed $(SEED))
# What `make mutants` draws from, how many faults, and which.
BASE ?= HEAD~20
COUNT ?= 60
SEED ?= 0
# Spark finds its Python workers by this; unset, it would take the python3 on the PATH.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
# Nor the folder, settings and arguments of another Spark, which this machine may have.
unexport SPARK_HOME SPARK_CONF_DIR PYSPARK_SUBMIT_ARGS
# Else each worker of pytest, and each process that Spark starts, would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE
# Each worker has its own session, brokers and registry; a file's tests stay with one worker.
SIDE_BY_SIDE = --numprocesses $(WORKERS) --dist loadfile
EVERY_DAY := not parity_full and not reliability_full

.PHONY: help demo demo-exactly-once docs test test-long test-matrix test-newest test-oldest test-python test-usual unit parity value-parity reliability soak assignors fuzz mutants java-clients options notebooks lint format types bench release clean $(SPARK:%=test-spark-%)
.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

demo: .venv/run  ## a real broker, a producer, a query whose rows and lag one can watch; ARGS=--help
	$(BIN)/python -m spark_kafka_source.demo $(ARGS)

demo-exactly-once: .venv/run  ## a query that is killed again and again, and its rows, counted; ARGS=--help
	$(BIN)/python -m spark_kafka_source.demo.exactly_once $(ARGS)

docs: .venv/test  ## the site of the documentation, in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

test: lint types .venv/ahead  ## style, types and all tests: real brokers, Spark's own connector
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations 10 -m "not long and $(EVERY_DAY)" --ignore tests/matrix

# Clusters and drivers that are killed keep the cores busy.
test-long: WORKERS = 2
test-long: .venv/ahead  ## what `make test` leaves out: clusters, notebooks, examples, faults; CI runs it too
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations 10 -m "long and $(EVERY_DAY)"

test-matrix: $(SPARK:%=test-spark-%)  ## what a user meets on Spark 4.0 to 4.3, or on SPARK="4.0 4.3"

# Away from the sources, so that what pip installed is what is tested.
$(SPARK:%=test-spark-%): test-spark-%: .venv-spark-%/test
	rm -rf build/spark-$* && mkdir -p build/spark-$*
	cp -R tests tools pyproject.toml build/spark-$*
	cd build/spark-$* && ../../.venv-spark-$*/bin/python -m pytest -m "" tests/matrix

unit: .venv/test  ## the tests without network and JVM, in seconds
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

# Tests without network and JVM, with few examples, in the environment $(1). $(2) are the folders of
# the tests; none for all.
define few_examples
	$(call make_ahead,$(1))
	$(1)/bin/python -m pytest $(SIDE_BY_SIDE) --hypothesis-profile few $(2)
endef

# The packages that use other libraries than Python's own.
WITH_LIBRARIES := $(addprefix tests/,records values typed registry consumer producer spark doctor dead_letters)

test-oldest: .venv-oldest/test  ## what uses libraries, and a smoke suite, on the oldest dependencies
	$(call few_examples,.venv-oldest,$(WITH_LIBRARIES))
	rm -rf build/smoke && mkdir -p build/smoke
	cp -R tests tools pyproject.toml build/smoke
	cd build/smoke && ../../.venv-oldest/bin/python -m pytest -m "" tests/matrix

test-python: $(OTHER)/test  ## `make unit` on PYTHON=python3.13 and the newest Spark
	$(call few_examples,$(OTHER))

# Spark's own connector, the peer, is published for Spark $(PYSPARK) only, and $(OTHER) has no Kerberos.
test-newest: export PYSPARK_PYTHON := $(CURDIR)/$(OTHER)/bin/python
test-newest: export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(OTHER)/bin/python
test-newest: $(OTHER)/test  ## the tests of `make test`, but the peer's, on PYTHON=python3.13 and the newest Spark
	$(call make_ahead,$(OTHER))
	$(OTHER)/bin/python -m pytest $(SIDE_BY_SIDE) --durations 10 -m "not long and not peer and not kerberos and $(EVERY_DAY)" --ignore tests/matrix

test-usual: .venv/ahead  ## what `make test-newest` leaves out of `make test`
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --durations 10 -m "(peer or kerberos) and not long and $(EVERY_DAY)" --ignore tests/matrix

parity: .venv/test  ## the scenarios of Spark's own Kafka suites, with both formats; the table in docs/contributors/measured/parity.md
	$(BIN)/python -m pytest -m peer tests/parity --parity-table docs/contributors/measured/parity.md

value-parity: .venv/test  ## odd values beside Spark's own functions; the table in docs/contributors/measured/typed-values-parity.md
	$(BIN)/python -m tools.value_parity

reliability: .venv/test  ## faults on real brokers, fifty times each, and a table of what came of it
	$(BIN)/python -m pytest --timeout 0 -m "" tests/reliability --rounds 50 --reliability-table build/reliability.md
	$(BIN)/python -m pytest --timeout 0 -m reliability_full tests/cluster tests/consumer tests/delta tests/exactly_once tests/notebooks tests/producer tests/soak tests/spark tests/demo
	$(BIN)/python -m pytest --timeout 0 -m "" tests/security/test_leaks.py tests/spark/test_hostile_options.py
	$(BIN)/python -m tools.reliability.deaf --rounds 5 --page docs/contributors/measured/deaf-brokers.md
	$(BIN)/python -m tools.reliability.deciding --generation 2 --rounds 50 --page docs/contributors/measured/exactly-once-faults.md
	$(BIN)/python -m tools.reliability.deciding --generation 1 --rounds 50 --page docs/contributors/measured/exactly-once-faults.md
	$(BIN)/python -m tools.reliability.sink --rounds 50 --others 10 --page docs/contributors/measured/exactly-once-faults-spark.md
	$(BIN)/python -m tools.reliability.writing --rounds 50 --page docs/contributors/measured/writing-faults.md

soak: .venv/test  ## a pipeline for HOURS=1 on three brokers with a nemesis; SEED names its faults
	$(BIN)/python -m tools.soak --hours $(HOURS) $(SOAK_SEED) --page docs/contributors/measured/soak.md --picture docs/contributors/measured/soak.svg

assignors: .venv/test  ## our assignors beside Kafka's own on tens of thousands of random groups
	ASSIGNOR_EXAMPLES=20000 $(BIN)/python -m pytest -m java tests/groups/assignors

fuzz: .venv/fuzz  ## bytes that nobody should send, to each target for SECONDS=60; a table in build/fuzz
	$(BIN)/python -m tools.fuzz --seconds $(SECONDS) $(TARGETS)

mutants: .venv/test  ## COUNT=60 faults in what changed since BASE=HEAD~20, or in FILES; the unseen are listed
	$(BIN)/python -m tools.mutants --count $(COUNT) --seed $(SEED) --base $(BASE) $(FILES)

java-clients: .venv/test  ## Kafka's Java clients and ours: the tables in their pages, held by tests
	$(BIN)/python -m tools.java_clients

options: .venv/test  ## the tables of options in docs/options.md, held by tests
	$(BIN)/python -m tools.options_table

notebooks: .venv/test  ## run on a real broker, and what they show written into them
	$(BIN)/python -m tools.notebooks

lint: .venv/test  ## style
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: .venv/test  ## put the code into the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: .venv/test  ## mypy, strictly
	$(BIN)/mypy

bench: .venv/test  ## against Spark's own connector, interleaved: tables and plots for docs
	$(BIN)/python -m tools.benchmarks
	$(BIN)/python -m tools.benchmarks.decode
	$(BIN)/python -m tools.benchmarks.encode --page docs/contributors/measured/writing-speed.md
	$(BIN)/python -m tools.benchmarks.produce --page docs/contributors/measured/writing-speed.md
	$(BIN)/python -m tools.benchmarks.sink --page docs/contributors/measured/writing-speed.md
	$(BIN)/python -m tools.benchmarks.typed --page docs/contributors/measured/typed-speed.md
	$(BIN)/python -m tools.benchmarks.values --page docs/contributors/measured/typed-speed.md
	$(BIN)/python -m tools.benchmarks.values --format protobuf --page docs/contributors/measured/typed-speed.md

release: .venv/release  ## wheel, sdist and SBOM in dist/, checked, and installed on each Python at hand; no upload
	$(BIN)/python -m tools.release

clean:  ## remove what was built and installed here
	rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

define new_environment
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or newer is needed, this is " + sys.version'
	$(PYTHON) -m venv $(@:/bin/python=)
endef
INSTALL := python -m pip install --quiet --disable-pip-version-check
# As pip does for a wheel. Spark starts a Python process for each step of a query, and where Python
# may not write its own bytecode (PYTHONDONTWRITEBYTECODE) each one would compile the package anew.
COMPILE := python -m compileall -q
# Nor does Spark's own archive of pyspark have bytecode. Without it these processes import the
# installed pyspark, which does: see docs/tuning.md.
ARCHIVES = $(addprefix $(1)/lib/python*/site-packages/pyspark/python/lib/,pyspark.zip py4j-*-src.zip)
KERNELS := $(patsubst %,spark_kafka_source.%.compiled,records values.avro values.json values.protobuf)
# What the workers of pytest would each make for themselves: the tests as pytest rewrites them, and
# the kernels in numba's cache, forty seconds of work. A fault is left to the run of pytest, which
# tells it.
define make_ahead
	-printf '%s\n' 'pytest --collect-only' $(KERNELS) | xargs -P 2 -I % sh -c '$(1)/bin/python -W ignore::RuntimeWarning:runpy -m % > /dev/null'
endef

.venv/bin/python:
	$(new_environment)

.venv/run: .venv/bin/python pyproject.toml Makefile
	$(BIN)/$(INSTALL) --editable . 'pyspark==$(PYSPARK)'
	$(BIN)/$(COMPILE) spark_kafka_source
	rm -f $(call ARCHIVES,.venv)
	touch $@

.venv/test: .venv/run
	$(BIN)/$(INSTALL) --editable '.[test,dev,docs,fast,bench]' 'pyspark==$(PYSPARK)'
	$(BIN)/$(COMPILE) tests tools
	touch $@

.venv/ahead: .venv/test
	$(call make_ahead,.venv)
	touch $@

# Where there is no wheel of atheris, the fuzzer goes on without it, blind.
.venv/fuzz: .venv/test
	$(BIN)/$(INSTALL) --editable '.[fuzz]'
	touch $@

# Needs gcc and MIT's headers (Debian: libkrb5-dev).
.venv/kerberos: .venv/test
	$(BIN)/$(INSTALL) --editable '.[gssapi]'
	touch $@

.venv/release: .venv/test
	$(BIN)/$(INSTALL) --editable '.[release]'
	touch $@

.venv-oldest/bin/python:
	$(new_environment)

.venv-oldest/test: .venv-oldest/bin/python pyproject.toml tools/oldest.py
	.venv-oldest/bin/python -m tools.oldest > .venv-oldest/constraints.txt
	.venv-oldest/bin/$(INSTALL) --constraint .venv-oldest/constraints.txt --editable '.[test,fast]'
	rm -f $(call ARCHIVES,.venv-oldest)
	touch $@

$(OTHER)/bin/python:
	$(new_environment)

$(OTHER)/test: $(OTHER)/bin/python pyproject.toml Makefile
	$(OTHER)/bin/$(INSTALL) --editable '.[test,docs,fast]' 'pyspark==$(NEWEST_SPARK).*'
	rm -f $(call ARCHIVES,$(OTHER))
	touch $@

SOURCES := pyproject.toml pyspark_pykafka.py $(shell find spark_kafka_source -type f -not -path '*/__pycache__/*')

$(SPARK:%=.venv-spark-%/bin/python): .venv-spark-%/bin/python:
	$(new_environment)

$(SPARK:%=.venv-spark-%/test): .venv-spark-%/test: .venv-spark-%/bin/python $(SOURCES)
	.venv-spark-$*/bin/$(INSTALL) '.[test,matrix]' 'pyspark==$*.*'
	touch $@
