"""A topic as a table, from an in-memory broker: arguments, what is read, errors."""

import json
import logging
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source import RecordsLostError, TopicPartition, read_topic, read_topic_batches
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    ConfigurationError,
    CorruptRecordError,
    KafkaTimeoutError,
    LocalError,
)
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest, OffsetFetchRequest
from spark_kafka_source.records import COLUMNS_WITH_HEADERS, Record, schema
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.typed import BadRecordError
from tests.consumer.consumers import QUICK, T0, T1, T2, longer_and_longer
from tests.registry.server import registry_server, version
from tests.registry.server import schema as schema_answer

pytestmark = pytest.mark.memory(nodes=3)

DAY_MS = 86_400_000
JSON = {"value_format": "json", "value_schema": "id BIGINT"}


@pytest.fixture
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    """Three logs on three brokers, each with three records, in two batches."""
    broker.held_step_seconds = 0.002
    logs = broker.create_topic("t", 3)
    for number, log in enumerate(logs):
        log.append(f"{number}a".encode(), f"{number}b".encode())
        log.append(f"{number}c".encode())
    return logs


def settings(broker: MemoryBroker, **given: Any) -> dict[str, Any]:
    quick = {name: value for name, value in QUICK.items() if name != "auto_offset_reset"}
    return {"bootstrap_servers": str(broker.address()), **quick, **given}


def read(broker: MemoryBroker, topic: Any = "t", **given: Any) -> pa.Table:
    return read_topic(topic, **settings(broker, **given))


def places(table: pa.Table) -> list[tuple[int, int]]:
    rows = zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
    return list(rows)


def values(table: pa.Table) -> list[Any]:
    return list(table["value"].to_pylist())


# -- what is read ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("logs")
def test_all_partitions_are_read_in_order(broker: MemoryBroker) -> None:
    table = read(broker)
    assert table.schema == schema(COLUMNS_WITH_HEADERS)
    assert places(table) == [(number, offset) for number in range(3) for offset in range(3)]
    assert values(table) == [f"{n}{letter}".encode() for n in range(3) for letter in "abc"]
    assert not broker.requests(OffsetCommitRequest)
    assert not broker.requests(OffsetFetchRequest)


@pytest.mark.usefixtures("logs")
def test_columns_are_those_asked_for(broker: MemoryBroker) -> None:
    assert read(broker, columns=["value", "offset"]).column_names == ["value", "offset"]


def test_an_empty_topic_is_a_table_without_rows(broker: MemoryBroker) -> None:
    broker.create_topic("t", 2)
    assert read(broker).schema == schema(COLUMNS_WITH_HEADERS)
    typed = read(broker, columns=["value"], **JSON)
    assert typed.schema == pa.schema([("value", pa.struct([("id", pa.int64())]))])
    assert typed.num_rows == 0


@pytest.mark.usefixtures("logs")
def test_one_partition_several_topics_and_both(broker: MemoryBroker) -> None:
    broker.create_topic("u")[0].append(b"u")
    assert places(read(broker, T1)) == [(1, 0), (1, 1), (1, 2)]
    assert places(read(broker, ("t", 1))) == [(1, 0), (1, 1), (1, 2)]
    both = read(broker, ["u", T2], columns=["topic", "partition", "value"])
    assert both["topic"].to_pylist() == ["t"] * 3 + ["u"]
    assert read(broker, ("t", "u")).num_rows == 10
    assert read(broker, [T0, "t"]).num_rows == read(broker, ["t", T0]).num_rows == 9


def test_records_that_come_later_are_left_out(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(*(bytes(500) for _ in range(20)))
    batches = read_topic_batches("t", **settings(broker))
    for log in logs:
        log.append(b"later")
    assert pa.Table.from_batches(batches).num_rows == 29


def test_offsets_without_records_are_passed(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    logs[0].append(b"aborted", transactional=True, producer_id=7)
    logs[0].append_marker(7, commit=False, first_offset=3)
    logs[1].append(Record(value=None), base_offset=40)
    logs[1].append_marker(8, commit=True)
    table = read(broker, isolation_level="read_committed")
    assert places(table) == [
        *[(0, 0), (0, 1), (0, 2)],
        *[(1, 0), (1, 1), (1, 2), (1, 40)],
        *[(2, 0), (2, 1), (2, 2)],
    ]
    assert (0, 3) in places(read(broker))


@pytest.mark.usefixtures("logs")
def test_batches_are_an_arrow_stream(broker: MemoryBroker) -> None:
    with read_topic_batches("t", columns=["value"], **settings(broker)) as batches:
        assert batches.schema == pa.schema([("value", pa.binary())])
        assert pa.Table.from_batches(list(batches)).num_rows == 9


def test_values_have_types(broker: MemoryBroker) -> None:
    broker.create_topic("t")[0].append(b'{"id": 1}', b"no JSON", b'{"id": 2}')
    with pytest.raises(BadRecordError, match="t-0 at offset 1"):
        read(broker, **JSON)
    assert values(read(broker, bad_records="skip", **JSON)) == [{"id": 1}, {"id": 2}]
    nulls = read(broker, bad_records="null", **JSON)
    assert values(nulls) == [{"id": 1}, None, {"id": 2}]
    assert nulls["value_error"][1].as_py()["bytes"] == b"no JSON"
    with pytest.raises(ConfigurationError, match=r"'bad_records': found 'topic'. A read writes no"):
        read(broker, bad_records="topic", bad_records_topic="letters", **JSON)


def test_a_registry_has_the_schemas(broker: MemoryBroker) -> None:
    avro = {"type": "record", "name": "E", "fields": [{"name": "id", "type": "long"}]}
    broker.create_topic("t")[0].append(*(b"\0\0\0\0\7" + row for row in (b"\2", b"\4")))
    with registry_server() as registry:
        registry.on("/schemas/ids/7", schema_answer(json.dumps(avro)))
        registry.on("/subjects/t-value/versions/latest", version(json.dumps(avro), 7))
        given = {"value_format": "avro", "schema_registry_url": registry.url}
        assert values(read(broker, **given)) == [{"id": 1}, {"id": 2}]


# -- start and end ---------------------------------------------------------------------------------


def at(days: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days)


@pytest.fixture
def dated(broker: MemoryBroker) -> list[PartitionLog]:
    """Two logs, with a record on each of the days 1 to 4, and of the days 3 and 4."""
    logs = broker.create_topic("d", 2)
    for log, days in zip(logs, ((1, 2, 3, 4), (3, 4)), strict=True):
        for day in days:
            log.append(Record(value=str(day).encode(), timestamp_ms=day * DAY_MS))
    return logs


@pytest.mark.usefixtures("dated")
@pytest.mark.parametrize(
    ("start", "to", "expected"),
    [
        ("earliest", "latest", "123434"),
        (" Earliest", "LATEST ", "123434"),
        ("latest", "latest", ""),
        (at(3), "latest", "3434"),
        (at(2.5), at(4), "33"),
        (at(9), "latest", ""),
        ("earliest", at(9), "123434"),
        ("1970-01-03T00:00:00Z", "1970-01-04T02:00:00+02:00", "2"),
        (timedelta(days=365 * 300), timedelta(0), "123434"),
        (timedelta(0), "latest", ""),
        ({0: 1, 1: 1}, "latest", "2344"),
        ({0: 1, 1: "earliest"}, {0: 2, 1: at(4)}, "23"),
        ({TopicPartition("d", 0): 4, ("d", 1): 2}, "latest", ""),
        ("earliest", {0: 0, 1: 0}, ""),
    ],
)
def test_the_start_and_the_end(broker: MemoryBroker, start: Any, to: Any, expected: str) -> None:
    found = read(broker, "d", start=start, to=to)
    assert b"".join(values(found)).decode() == expected


@pytest.mark.usefixtures("dated")
def test_one_of_the_partitions_has_its_own_start(broker: MemoryBroker) -> None:
    assert values(read(broker, TopicPartition("d", 1), start={1: 1})) == [b"4"]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("start", "erliest", "found 'erliest'. Give 'earliest', 'latest', a datetime"),
        ("start", 5, "found '5'. Give 'earliest'"),
        ("to", -1, "found '-1'"),
        ("to", None, "found 'None'"),
        ("to", datetime(2026, 5, 4, 13), "which has no zone. Give it one, as in datetime"),
        ("start", "2026-05-04T13:00:00", "found '2026-05-04T13:00:00'. Write 'Z' behind it"),
        ("start", timedelta(hours=-1), "which is to come. A timedelta goes back from now"),
        ("start", {0: -2}, "found '-2' for 0"),
        ("start", {0: True}, "found 'True' for 0"),
        ("start", {0: 1.5}, "found '1.5' for 0"),
        ("start", {"t": 1}, "names \"'t'\" for a partition"),
        ("start", {("t", -1): 1}, "names \"('t', -1)\" for a partition"),
    ],
)
def test_bounds_that_cannot_be_used(name: str, given: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^Option '{name}': .*{re.escape(message)}"):
        read_topic("t", bootstrap_servers="localhost:1", **{name: given})


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({0: 1}, "has nothing for t-1, t-2. Give one for each partition that is read"),
        ({0: 1, 1: 1, 2: 1, 3: 1}, "names t-3, which is not read. There are t-0, t-1, t-2"),
        ({("u", 0): 1}, "names u-0, which is not read"),
        ({0: 1, 1: 1, 2: 1, ("t", 0): 2}, "names t-0 twice, by its number and by its topic"),
    ],
)
def test_bounds_of_other_partitions(broker: MemoryBroker, start: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'start': {message}"):
        read(broker, start=start)


@pytest.mark.usefixtures("logs")
def test_numbers_are_partitions_of_the_only_topic(broker: MemoryBroker) -> None:
    broker.create_topic("u")
    with pytest.raises(ConfigurationError, match="Several topics are read: name partitions as"):
        read(broker, ["t", "u"], start={0: 0})


@pytest.mark.usefixtures("logs")
def test_a_start_after_the_end(broker: MemoryBroker) -> None:
    with pytest.raises(ConfigurationError, match="'start': is offset 3 of t-0, and 'to' is offset"):
        read(broker, start="latest", to="earliest")


@pytest.mark.parametrize("bound", ["start", "to"])
def test_an_offset_beyond_the_end(
    broker: MemoryBroker, logs: list[PartitionLog], bound: str
) -> None:
    logs[0].log_start_offset = 1
    with pytest.raises(RecordsLostError, match=r"t-0: offset 4 is not in the log, .* 1 to 3"):
        read(broker, T0, **{bound: {0: 4}})


@pytest.mark.parametrize("bound", ["start", "to"])
def test_an_offset_that_an_open_transaction_hides(
    broker: MemoryBroker, logs: list[PartitionLog], bound: str
) -> None:
    logs[0].fixed_last_stable_offset = 1
    with pytest.raises(RecordsLostError) as raised:
        read(broker, T0, isolation_level="read_committed", **{bound: {0: 2}})
    assert str(raised.value) == (
        "t-0: offset 2 is beyond the last stable offset, 1: a transaction is open there, and the "
        "log ends at 3; wait until it ends, or read with isolation level 'read_uncommitted'"
    )
    assert read(broker, T0, to={0: 2}).num_rows == 2
    with pytest.raises(RecordsLostError, match=r"offset 4 is not .* offsets 0 to 3"):
        read(broker, T0, isolation_level="read_committed", **{bound: {0: 4}})


# -- what goes wrong -------------------------------------------------------------------------------


def test_records_that_expired_are_an_error(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    logs[1].log_start_offset = 2
    assert (1, 2) in places(read(broker)), "the first record that is there is the earliest"
    with pytest.raises(RecordsLostError, match="t-1: offset 1 is not in the log"):
        read(broker, T1, start={1: 1})
    logs[1].log_start_offset = 0
    batches = read_topic_batches(T1, **settings(broker))
    logs[1].log_start_offset = 2
    with pytest.raises(RecordsLostError, match="t-1: offset 0 is not in the log"):
        list(batches)


def test_a_topic_that_is_not_there(broker: MemoryBroker) -> None:
    with pytest.raises(BrokerError, match="There is no topic 'none', or this user may not see it"):
        read(broker, "none")


@pytest.mark.usefixtures("logs")
def test_a_partition_that_is_not_there(broker: MemoryBroker) -> None:
    with pytest.raises(ConfigurationError, match=r"'topic': there is no t-3\. There are 0 to 2"):
        read(broker, TopicPartition("t", 3))


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        ([], ConfigurationError, "'topic': is not given"),
        ("", ConfigurationError, "'topic': is not given"),
        (None, LocalError, "found None"),
        (b"t", LocalError, "found b't'"),
        ([("t", -1)], LocalError, "found"),
    ],
)
def test_topics_that_cannot_be(topic: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_topic(topic, bootstrap_servers="localhost:1")


def test_a_table_that_would_be_too_large(broker: MemoryBroker) -> None:
    broker.create_topic("t")[0].append(*(bytes(1_000) for _ in range(10)))
    with pytest.raises(ConfigurationError, match=r"about \d{5} bytes, .* read_topic_batches"):
        read(broker, max_bytes=5_000)
    assert read(broker, max_bytes=50_000).num_rows == 10
    for wrong in (0, True, "1"):
        with pytest.raises(ConfigurationError, match="'max_bytes': found"):
            read(broker, max_bytes=wrong)


def test_a_leader_that_is_silent(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    for timeout_ms in longer_and_longer(200):
        little = settings(broker, default_api_timeout_ms=timeout_ms, fetch_max_wait_ms=1)
        logs[0].fixed_high_watermark = 3
        with pytest.raises((KafkaTimeoutError, BootstrapError)) as caught:
            batches = read_topic_batches(T0, **little)
            logs[0].fixed_high_watermark = 0
            list(batches)
        if "nothing at offset 0" in str(caught.value):
            break
    said = f"nothing at offset 0 within {timeout_ms} ms ('default_api_timeout_ms')"
    assert said in str(caught.value)


def test_a_corrupt_record(broker: MemoryBroker, logs: list[PartitionLog]) -> None:
    batch = logs[0].batches[0]
    logs[0].batches[0] = batch._replace(data=batch.data[:-1] + b"\xff")
    with pytest.raises(CorruptRecordError, match="t-0"):
        read(broker)


@pytest.mark.usefixtures("logs")
def test_a_leader_that_moves(broker: MemoryBroker) -> None:
    batches = read_topic_batches("t", **settings(broker))
    broker.move_leader(T0, 2)
    assert pa.Table.from_batches(batches).num_rows == 9


# -- settings --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("logs")
def test_settings_of_a_group_have_no_effect(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    read(broker, enable_auto_commit=False, auto_offset_reset="earliest")
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        read(broker, group_id="g", auto_offset_reset="latest")
    assert sorted(caplog.messages) == [
        "'auto_offset_reset' has no effect here: `start` says where the read begins",
        "'group_id' has no effect here: a read of a topic joins no group, and commits nothing",
    ]
    assert not broker.requests(OffsetFetchRequest)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"columns": "value"}, "'columns': found 'value'. Give a list of names"),
        ({"columns": ["vlaue"]}, "'columns': found 'vlaue'"),
        ({"columns": []}, "'columns': are none"),
        ({"value_deserializer": bytes}, "'value_deserializer'"),
        ({"isolation.level": "comitted"}, "'isolation.level': found 'comitted'"),
        ({"ending": "latest"}, "'ending': is no configuration of this read of a topic"),
        ({"end": "latest"}, "'end': .* Give the end, which is not included, as `to`"),
        ({"topics": ["t"]}, "'topics': .* Give the topics as `topic`"),
        ({"limit": 5}, "'limit': .* Take batches of `read_topic_batches` until there is enough"),
    ],
)
def test_arguments_that_cannot_be_used(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_topic("t", bootstrap_servers="localhost:1", **given)


def test_an_end_by_time_warns_of_order(
    broker: MemoryBroker, dated: list[PartitionLog], caplog: pytest.LogCaptureFixture
) -> None:
    del dated
    with caplog.at_level(logging.WARNING):
        read(broker, "d", to="latest", start=at(2))
        assert not caplog.records
        read(broker, "d", to=at(2))
    (message,) = caplog.messages
    assert message.startswith("'to' ends each partition at its first record of that time or later")
