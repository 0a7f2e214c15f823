"""Lazy imports of packages, and modules that a reading process does not import."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import spark_kafka_source

ROOT = Path(spark_kafka_source.__file__).parent
PACKAGES = [
    ".".join(path.parent.relative_to(ROOT.parent).parts)
    for path in sorted(ROOT.rglob("__init__.py"))
    if "importing(" in path.read_text()
]
LEFT_OUT = (
    "crc32c",
    "difflib",
    "http.client",
    "importlib.metadata",
    "pyarrow.compute",
    "spark_kafka_source.admin",
    "spark_kafka_source.consumer.kafka_consumer",
    "spark_kafka_source.exactly_once.driver",
    "spark_kafka_source.exactly_once.names",
    "spark_kafka_source.groups.assignors",
    "spark_kafka_source.net.sasl.mechanism",
    "spark_kafka_source.options.other_names",
    "spark_kafka_source.producer.config",
    "spark_kafka_source.producer.kafka_producer",
    "spark_kafka_source.protocol.messages.group_admin",
    "spark_kafka_source.protocol.messages.groups",
    "spark_kafka_source.registry.client",
    "spark_kafka_source.spark.sink.options",
    "spark_kafka_source.spark.sink.writer",
    "spark_kafka_source.spark.source.java_pattern",
    "spark_kafka_source.telemetry",
    "spark_kafka_source.typed.decoding",
    "spark_kafka_source.values.decoding",
)
"""Modules that a process does not need to read bytes."""
READERS = [
    f"spark_kafka_source.spark.{each}" for each in ("data_source", "source.batch", "source.stream")
]
"""The module that each step of a query imports."""


@pytest.mark.parametrize("package", PACKAGES)
def test_each_name_is_where_type_checkers_look_for_it(package: str) -> None:
    module = import_module(package)
    assert module.__file__ is not None
    path = Path(module.__file__)
    typed = {
        alias.name: node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(package)
        for alias in node.names
        if alias.name not in ("importing", "VERSION")
    }
    assert set(module.__all__) - {"__version__"} == typed.keys()
    for name, home in typed.items():
        assert getattr(module, name) is getattr(import_module(home), name)
    # An imported module of the same name would replace the attribute.
    assert typed.keys().isdisjoint(each.stem for each in path.parent.iterdir())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_of_nobodys(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nobody'"):
        import_module(package).nobody  # noqa: B018 - asked for alone


@pytest.mark.parametrize("wanted", READERS)
def test_who_reads_imports_nothing_that_writes(wanted: str) -> None:
    found = _printed(f"import sys, {wanted}; print(*sys.modules)")
    assert wanted in found
    assert set(LEFT_OUT).isdisjoint(found)


def test_a_reader_parses_its_options_without_those_of_writers() -> None:
    found = _printed("""
import sys
from spark_kafka_source.spark.options import parse_source_options
parse_source_options({"kafka.bootstrap.servers": "broker:9092", "subscribe": "t", "path": "p"})
print(*sys.modules)
""")
    assert "spark_kafka_source.spark.source.options" in found
    assert set(LEFT_OUT).isdisjoint(found)


@pytest.mark.parametrize("wanted", READERS)
def test_regular_expressions_are_compiled_at_their_first_use(wanted: str) -> None:
    assert not _printed(f"""
import re, sys

def compile(*_):
    name = sys._getframe(1).f_globals["__name__"]
    if name.startswith("spark_kafka_source."):
        print(name)
    return really(*_)

really, re.compile = re.compile, compile
import {wanted}
""")


def test_clients_and_commands_need_no_pyspark() -> None:
    """It is a dependency, and 490 MB: `platforms-in-detail.md` says how to do without it."""
    assert _printed("""
import sys
sys.modules["pyspark"] = None

import spark_kafka_source.aio
import spark_kafka_source.command_line.main
import spark_kafka_source.consumer.read_topic
import spark_kafka_source.testing
from spark_kafka_source import KafkaAdmin, KafkaConsumer, KafkaProducer

print(KafkaConsumer.__name__)
""") == ["KafkaConsumer"]


def _printed(code: str) -> list[str]:
    """Return the words that a program prints, in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
