"""Typed values on the command line: the output of `tail` and `schema`."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.command_line.main import main
from tests.consumer.conftest import broker
from tests.memory_broker import MemoryBroker
from tests.producer.writing import written as records_of
from tests.values.avro_oracle import written

__all__ = ["broker"]

AVRO = {"type": "record", "name": "E", "fields": [
    {"name": "id", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "raw", "type": "bytes"},
]}  # fmt: skip
GIVEN = ["--config", "value.format=avro", "--config", f"value.schema={json.dumps(AVRO)}"]
Run = Callable[..., list[str]]


@pytest.fixture
def run(broker: MemoryBroker, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command and returns its output."""

    def run(*words: str) -> list[str]:
        status = main([words[0], "-b", str(broker.address()), *words[1:]])
        shown = capsys.readouterr()
        assert status == 0, shown.err
        return shown.out.splitlines()

    return run


@pytest.fixture
def events(broker: MemoryBroker) -> None:
    row: dict[str, Any] = {"id": 5, "at": 1, "raw": b"\xff"}
    broker.create_topic("t")[0].append(*written(AVRO, [row]), b"\xff")


@pytest.mark.usefixtures("events")
def test_tail_shows_what_values_mean(run: Run) -> None:
    shown = {"id": 5, "at": "1970-01-01T00:00:00.000001+00:00", "raw": "/w=="}
    lines = run("tail", "t", "-n", "1", "--from", "earliest", *GIVEN)
    assert lines[0].endswith(json.dumps(shown))
    lines = run("tail", "t", "--json", *GIVEN, "--config", "badRecords=null")
    first, second = map(json.loads, lines)
    assert first["value"] == shown
    assert "value_error" not in first
    assert second["value"] is None
    assert second["value_error"]["bytes"] == "/w=="
    (_, bad) = run("tail", "t", *GIVEN, "--config", "badRecords=null")
    assert f"null  value_error: {second['value_error']['reason']}" in bad


@pytest.mark.usefixtures("events")
def test_schema_is_ddl(run: Run, broker: MemoryBroker) -> None:
    assert run("schema", "t", *GIVEN) == ["id BIGINT, at TIMESTAMP, raw BINARY"]
    broker.create_topic("j")[0].append(b'{"a": 1}')
    assert run("schema", "j") == ["a BIGINT"]
    assert json.loads(run("schema", "j", "--json")[0]) == {"topic": "j", "value": "a BIGINT"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tail", "t", "--config", "value.format=avro"], "'schema.registry.url': is missing"),
        (["tail", "t", "--config", "value.fromat=avro"], "Did you mean 'value.format'?"),
        (["produce", "t", "--config", "value.format=avro"], "'value.schema': is missing"),
        (["tail", "t", "--config", "badrecords=null"], "'badRecords': has no effect"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    broker: MemoryBroker, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    broker.create_topic("t")
    assert main([words[0], "-b", str(broker.address()), *words[1:]]) == 2
    assert expected in capsys.readouterr().err


SAID = ["--config", "value.format=avro", "--config"]
PLAIN = {"type": "record", "name": "P", "fields": [
    {"name": "id", "type": "long"},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
]}  # fmt: skip


@pytest.fixture
def produce(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Return a function that runs `produce` with lines, and returns status and standard error."""

    def produce(lines: str, *words: str) -> tuple[int, str]:
        broker.create_topic("p")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        given = ["-b", str(broker.address()), *words]
        return main(["produce", "p", *given]), capsys.readouterr().err

    return produce


def values(broker: MemoryBroker) -> list[bytes]:
    log = broker.cluster.topics["p"].logs[0]
    return [each.value or b"" for each in records_of(log)]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('{"id": 1}\n{"id": 2, "at": "1970-01-01T00:00:00.000005Z"}\n', []),
        (
            '{"value": "{\\"id\\": 1}"}\n'
            '{"value": "{\\"id\\": 2, \\"at\\": \\"1970-01-01T00:00:00.000005Z\\"}"}\n',
            ["--json"],
        ),
    ],
)
def test_lines_of_json_are_written_by_a_schema(
    broker: MemoryBroker, produce: Callable[..., tuple[int, str]], lines: str, words: list[str]
) -> None:
    status, said = produce(lines, *words, *SAID, f"value.schema={json.dumps(PLAIN)}")
    assert (status, said) == (0, "Topic 'p': 2 records are written\n")
    assert values(broker) == [b"\2\0", b"\4\2\x0a"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "x"}', "its value does not fit the schema: id"),
        ("{}", "its value does not fit the schema: id: null"),
        ("no JSON", "its value does not fit the schema"),
    ],
)
def test_a_line_that_does_not_fit_ends_it(
    broker: MemoryBroker, produce: Callable[..., tuple[int, str]], line: str, reason: str
) -> None:
    lines = f'{{"id": 1}}\n{line}\n{{"id": 3}}\n'
    status, said = produce(lines, *SAID, f"value.schema={json.dumps(PLAIN)}")
    assert status == 1
    assert f"Line 2: {reason}" in said
    assert values(broker) == [b"\2\0"]


def test_lines_of_json_need_no_schema(
    broker: MemoryBroker, produce: Callable[..., tuple[int, str]]
) -> None:
    assert produce('{"id": 1}\n', "--config", "value.format=json")[0] == 0
    assert values(broker) == [b'{"id": 1}']


def test_a_file_of_javas_clients_may_name_a_registry(
    broker: MemoryBroker, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("t")[0].append(b"\0\0\0\0\1x")
    file = tmp_path / "client.properties"
    file.write_text("schema.registry.url=http://127.0.0.1:1\nauto.register.schemas=true\n")
    assert run("tail", "t", "--config-file", str(file))
    file.write_text(f"value.format=avro\nvalue.schema={json.dumps(AVRO)}\n")
    words = ["tail", "t", "-b", str(broker.address()), "--config-file", str(file)]
    assert main(words) == 1
    assert "the value cannot be decoded" in capsys.readouterr().err
    file.write_text(f"value.schema={json.dumps(AVRO)}\n")
    assert main([*words, "--config", "value.format=avro", "--config", "badRecords=null"]) == 0


def test_tail_goes_on_after_a_time_that_python_has_no_object_for(
    broker: MemoryBroker, run: Run
) -> None:
    """PostgreSQL's infinity, as Debezium writes it."""
    rows = [{"id": each, "at": 9223372036825200000 * each, "raw": b""} for each in (-1, 0, 1)]
    broker.create_topic("t")[0].append(*written(AVRO, rows))
    for policy in ("fail", "null", "skip"):
        lines = run("tail", "t", "--json", *GIVEN, "--config", f"badRecords={policy}")
        assert [json.loads(each)["value"]["at"] for each in lines] == [
            "-290308-12-21T19:59:34.800000Z",
            "1970-01-01T00:00:00+00:00",
            "+294247-01-10T04:00:25.200000Z",
        ]
