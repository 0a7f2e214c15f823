"""A consumer with typed values: results, malformed values, and a registry that is down."""

import datetime
import json
import logging
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from spark_kafka_source import KafkaConsumer, Secret, TopicPartition
from spark_kafka_source.consumer import typed_decoding
from spark_kafka_source.consumer.consumer_records import (
    ConsumerRecord,
    ConsumerRecords,
    MixedColumnsError,
)
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.records import Record
from spark_kafka_source.registry import RegistryDeniedError, RegistryUnavailableError, programs
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.typed import ERROR_TYPE, BadRecordError
from tests.consumer.consumers import PATIENCE_MS, T0, T1, consuming, eventually, poll_until
from tests.registry.server import Reply, TestRegistry, Then, error, registry_server, schema, version
from tests.values.avro_oracle import written

pytestmark = pytest.mark.memory(nodes=3)

V1 = {"type": "record", "name": "E", "fields": [{"name": "id", "type": "long"}]}
V2 = {
    **V1,
    "fields": [*V1["fields"], {"name": "name", "type": ["null", "string"], "default": None}],
}
BY_ID = {1: V1, 2: V2}
AT = {"type": "long", "logicalType": "timestamp-micros"}
MORE = {
    "type": "record",
    "name": "M",
    "fields": [{"name": "m", "type": {"type": "map", "values": AT}}],
}
INSTANT = {
    "type": "record",
    "name": "I",
    "fields": [
        {"name": "at", "type": AT},
        {"name": "more", "type": {"type": "array", "items": MORE}},
    ],
}
DDL = "id BIGINT, name STRING"


def value(schema_id: int, **row: Any) -> bytes:
    (found,) = written(BY_ID[schema_id], [row])
    return struct.pack(">bi", 0, schema_id) + found


@pytest.fixture
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    return broker.create_topic("t", 3)


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    """Run a registry with both schemas by id. The second one is the schema of topic t."""
    with registry_server() as registry:
        for number, each in BY_ID.items():
            registry.on(f"/schemas/ids/{number}", schema(json.dumps(each)))
        registry.on("/subjects/t-value/versions/latest", version(json.dumps(V2), 2))
        yield registry


def avro(registry: TestRegistry, **options: Any) -> dict[str, Any]:
    return {"value_format": "avro", "schema_registry_url": registry.url, **options}


def read(consumer: KafkaConsumer, count: int) -> list[ConsumerRecord]:
    """Poll until there are `count` records. Return them."""
    found: list[ConsumerRecord] = []
    poll_until(consumer, lambda: len(found) >= count, found.extend)
    return found


def values(consumer: KafkaConsumer, count: int) -> list[Any]:
    return [each.value for each in read(consumer, count)]


def tables(consumer: KafkaConsumer, count: int) -> pa.Table:
    found: list[pa.Table] = []
    poll_until(
        consumer,
        lambda: sum(each.num_rows for each in found) >= count,
        lambda records: found.append(records.to_arrow()) if len(records) else None,
    )
    return pa.concat_tables(found)


# -- results ---------------------------------------------------------------------------------------


def test_records_are_dicts_and_tables_have_their_columns(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    logs[0].append(value(1, id=1), value(2, id=2, name="two"), Record(key=b"k", value=None))
    expected = [{"id": 1, "name": None}, {"id": 2, "name": "two"}, None]
    with consuming(broker, T0, **avro(registry)) as consumer:
        records = read(consumer, 3)
        assert [each.value for each in records] == expected
        assert (records[2].key, records[2].value_error) == (b"k", None)
    with consuming(broker, T0, columns=["value", "key"], **avro(registry)) as consumer:
        table = tables(consumer, 3)
        assert table.column_names == ["value", "key"]
        kind = pa.struct([("id", pa.int64()), ("name", pa.string())])
        assert table["value"].type == kind
        assert table["value"].to_pylist() == expected
        assert consumer.poll(0).to_arrow().schema == table.schema


def test_iterating_goes_on_for_ever(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    logs[0].append(value(1, id=1), value(1, id=2))
    with consuming(broker, T0, **avro(registry)) as consumer:
        records = iter(consumer)
        assert [next(records).value["id"] for _ in range(2)] == [1, 2]


def test_names_may_have_dots_and_spark_has_the_same(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    logs[0].append(value(2, id=1, name="a"), b"{}")
    options = {
        "value.format": "avro",
        "schema.registry.url": registry.url,
        "value.fields": "id",
        "badRecords": "null",
    }
    with consuming(broker, T0, **options) as consumer:
        assert values(consumer, 2) == [{"id": 1}, None]


def test_a_schema_that_is_given_needs_no_registry(
    broker: MemoryBroker, logs: list[PartitionLog]
) -> None:
    logs[0].append(Record(key=b"k", value=b'{"id": 7, "name": null}'))
    json_values = {"value_format": "json", "value_schema": DDL, "key_format": "string"}
    with consuming(broker, T0, **json_values) as consumer:
        kind = pa.struct([("id", pa.int64()), ("name", pa.string())])
        assert consumer.poll(0).to_arrow().schema.field("value").type == kind
        (record,) = read(consumer, 1)
        assert (record.key, record.value) == ("k", {"id": 7, "name": None})
    with consuming(broker, T0, value_format="avro", value_schema=json.dumps(V1)) as consumer:
        logs[0].append(value(1, id=3)[5:])
        consumer.seek(T0, 1)
        assert values(consumer, 1) == [{"id": 3}]


def test_the_schema_of_a_topic_is_that_of_when_it_was_first_read(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    logs[0].append(value(1, id=1))
    with consuming(broker, T0, T1, **avro(registry)) as consumer:
        read(consumer, 1)
        registry.on("/subjects/t-value/versions/latest", version(json.dumps(V1), 1))
        logs[1].append(value(2, id=2, name="b"))
        assert values(consumer, 1) == [{"id": 2, "name": "b"}]
        assert registry.paths().count("/subjects/t-value/versions/latest") == 1
        assert registry.paths().count("/schemas/ids/1") == 1


def test_topics_of_several_types_are_tables_of_their_own(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    logs[0].append(value(1, id=1))
    broker.create_topic("u")[0].append(value(1, id=2))
    registry.on("/subjects/u-value/versions/latest", version(json.dumps(V1), 1))
    both = (T0, TopicPartition("u", 0))
    with consuming(broker, *both, **avro(registry)) as consumer:
        records = polled_together(consumer, *both)
        with pytest.raises(MixedColumnsError, match="by `value_schema_subject`") as failed:
            records.to_arrow()
        assert sorted(failed.value.topics) == ["t", "u"]
        assert records.of("u").to_arrow()["value"].to_pylist() == [{"id": 2}]
        assert records.of("t").to_arrow()["value"].to_pylist() == [{"id": 1, "name": None}]
        assert sorted(len(each.value) for each in records) == [1, 2]
        # A missing value has no known type.
        assert records.of("x").to_arrow().schema.field("value").type == pa.null()
    one = avro(registry, value_schema_subject="t-value")
    with consuming(broker, *both, **one) as consumer:
        found = polled_together(consumer, *both).to_arrow()["value"].to_pylist()
        assert sorted(each["id"] for each in found) == [1, 2]


def polled_together(consumer: KafkaConsumer, *where: TopicPartition) -> ConsumerRecords:
    """Poll until one poll returns first records of all these partitions, which have one leader.

    Where the answer about one comes while the leader is asked about the other, they would take
    turns. So the next request is held back until it can ask for all.
    """
    found: list[ConsumerRecords] = []

    def begin_again(records: ConsumerRecords) -> None:
        found[:] = [records]
        if len(records) == len(where):
            return
        consumer.pause(where)
        eventually(lambda: not consumer.poll(timeout_ms=1) and not consumer._reading.waited_for)
        for each in where:
            consumer.seek(each, 0)
        consumer.resume(where)

    poll_until(consumer, lambda: bool(found) and len(found[0]) == len(where), begin_again)
    return found[0]


@pytest.mark.parametrize("policy", ["fail", "null", "skip"])
def test_a_time_that_python_has_no_object_for_is_a_text_and_no_bad_record(
    broker: MemoryBroker, logs: list[PartitionLog], policy: str
) -> None:
    instants = [0, 2**62, 1]
    rows = [{"at": each, "more": [{"m": {"k": each}}]} for each in instants]
    logs[0].append(*written(INSTANT, rows))
    plain = {"value_format": "avro", "value_schema": json.dumps(INSTANT), "bad_records": policy}
    with consuming(broker, T0, **plain) as consumer:
        first, far, third = values(consumer, 3)
        text = "+148108-07-06T14:00:27.387904Z"
        assert far == {"at": text, "more": [{"m": [("k", text)]}]}
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        assert first == {"at": epoch, "more": [{"m": [("k", epoch)]}]}
        assert third["at"] == epoch + datetime.timedelta(microseconds=1)
        assert consumer.metrics()["bad-records-skipped-total"] == 0
        consumer.seek(T0, 0)
        column = tables(consumer, 3)["value"].combine_chunks().field("at")
        assert column.cast(pa.int64()).to_pylist() == instants


# -- malformed records -----------------------------------------------------------------------------


def test_a_bad_record_comes_after_the_good_ones_before_it(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    logs[0].append(value(1, id=1), value(1, id=2), b"{bad}", value(1, id=4))
    with consuming(broker, T0, **avro(registry)) as consumer:
        seen: list[ConsumerRecord] = []
        for _ in range(2):  # The error repeats until the user seeks.
            with pytest.raises(BadRecordError) as failed:
                seen.extend(consumer)
            assert (failed.value.topic_partition, failed.value.offset) == (T0, 2)
            assert consumer.position(T0) == 2
        assert [each.value["id"] for each in seen] == [1, 2]
        assert "t-0 at offset 2: the value cannot be decoded: no schema id, found 7b" in str(
            failed.value
        )
        assert "Option 'bad_records' lets it pass" in str(failed.value)
        consumer.seek(T0, failed.value.offset + 1)
        assert values(consumer, 1) == [{"id": 4, "name": None}]


@pytest.mark.parametrize("name", ["bad_records", "badRecords", "BADRECORDS"])
def test_bad_records_may_be_null_with_an_error_beside(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry, name: str
) -> None:
    logs[0].append(value(1, id=1), b"{bad}", Record(value=None), b"\0\0\0\0\7abc")
    with consuming(broker, T0, **avro(registry, **{name: "null"})) as consumer:
        records = read(consumer, 4)
        assert [each.value for each in records] == [{"id": 1, "name": None}, None, None, None]
        assert [each.value_error for each in records] == [
            None,
            {"reason": "no schema id, found 7b", "schema_id": None, "bytes": b"{bad}"},
            None,
            {
                "reason": "the registry has no schema 7",
                "schema_id": 7,
                "bytes": b"\0\0\0\0\7abc",
            },
        ]
        assert records[0].key_error is None
        consumer.seek(T0, 0)
        table = tables(consumer, 4)
        assert table.schema.field("value_error").type == ERROR_TYPE
        assert table["value_error"].null_count == 2
        assert consumer.poll(0).to_arrow().schema == table.schema
        assert registry.paths().count("/schemas/ids/7") == 1


def test_bad_records_may_be_left_out_which_is_counted_and_logged(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    registry: TestRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs[0].append(b"{bad}", b"{too}")
    logs[0].append(value(1, id=1), b"")
    with (
        consuming(broker, T0, **avro(registry, bad_records="skip")) as consumer,
        caplog.at_level(logging.WARNING, "spark_kafka_source.typed.decoding"),
    ):
        (record,) = read(consumer, 1)
        poll_until(consumer, lambda: consumer.position(T0) == 4)
        assert record.offset == 2
        assert consumer.metrics()["bad-records-skipped-total"] == 3
        assert consumer.metrics()["records-consumed-total"] == 1
    (message,) = caplog.messages
    assert message.startswith(
        "Skipped a bad record, and will skip later ones without a log line: t-0 at offset 0"
    )


def test_a_schema_that_is_registered_after_its_records_is_found(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    late = "/schemas/ids/1"
    registry.on(late, error(404, 40403))
    logs[0].append(value(1, id=1))
    with consuming(broker, T0, **avro(registry)) as consumer:
        with pytest.raises(BadRecordError, match="the registry has no schema 1"):
            read(consumer, 1)
        registry.on(late, schema(json.dumps(V1)))
        assert values(consumer, 1) == [{"id": 1, "name": None}]


def test_an_id_that_was_unknown_is_found_in_a_later_record(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    registry: TestRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "UNKNOWN_SECONDS", 0)
    registry.on("/schemas/ids/1", error(404, 40403))
    logs[0].append(value(1, id=1))
    with consuming(broker, T0, **avro(registry, bad_records="null")) as consumer:
        assert values(consumer, 1) == [None]
        registry.on("/schemas/ids/1", schema(json.dumps(V1)))
        logs[0].append(value(1, id=2))
        assert values(consumer, 1) == [{"id": 2, "name": None}]


def test_what_was_not_there_is_asked_for_again_after_a_while(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    registry: TestRegistry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = "/schemas/ids/1"
    registry.on(late, error(404, 40403))
    logs[0].append(value(1, id=1))
    with consuming(broker, T0, **avro(registry, bad_records="null")) as consumer:
        assert values(consumer, 1) == [None]
        registry.on(late, schema(json.dumps(V1)))
        logs[0].append(value(1, id=2))
        assert values(consumer, 1) == [None]
        monkeypatch.setattr(typed_decoding, "monotonic", lambda: time.monotonic() + 61)
        logs[0].append(value(1, id=3))
        assert values(consumer, 1) == [{"id": 3, "name": None}]


# -- the registry ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fail", "null", "skip"])
@pytest.mark.parametrize(
    "asked",
    [("/schemas/ids/1", "id 1"), ("/subjects/t-value/versions/latest", "subject 't-value'")],
)
def test_a_registry_that_denies_is_no_bad_record_and_is_asked_again(
    broker: MemoryBroker,
    logs: list[PartitionLog],
    registry: TestRegistry,
    policy: str,
    asked: tuple[str, str],
) -> None:
    path, expected = asked
    before = registry.replies[path]
    registry.on(path, error(401))
    logs[0].append(value(1, id=1))
    with consuming(broker, T0, **avro(registry, bad_records=policy)) as consumer:
        for _ in range(2):
            with pytest.raises(RegistryDeniedError, match=expected) as failed:
                read(consumer, 1)
            assert consumer.position(T0) == 0
        assert "'schema_registry_basic_auth_user_info'" in str(failed.value)
        registry.on(path, *before)
        assert values(consumer, 1) == [{"id": 1, "name": None}]


def test_a_registry_that_is_away_for_a_while_loses_nothing(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    registry.on("/schemas/ids/1", error(503))
    logs[0].append(value(2, id=0, name="a"))
    logs[0].append(value(1, id=1))
    options = avro(registry, bad_records="skip", schema_registry_timeout_ms=200)
    with consuming(broker, T0, **options) as consumer:
        found: list[ConsumerRecord] = []
        with pytest.raises(RegistryUnavailableError):
            poll_until(consumer, lambda: False, found.extend)
        # Now the call may be slow, as on a busy machine.
        client = consumer._decoding.typed._registry
        client.config = replace(client.config, timeout_ms=PATIENCE_MS)
        registry.on("/schemas/ids/1", schema(json.dumps(V1)))
        poll_until(consumer, lambda: len(found) >= 2, found.extend)
        assert [each.offset for each in found] == [0, 1]
        assert consumer.metrics()["bad-records-skipped-total"] == 0


def test_a_poll_does_not_wait_for_a_registry_that_is_silent(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    known = registry.replies["/schemas/ids/1"]
    registry.on("/schemas/ids/1", Reply(raw=b"", then=Then.HANG))
    logs[0].append(value(1, id=1))
    with consuming(broker, T0, T1, **avro(registry)) as consumer:
        # Other records go on meanwhile, and the registry gets one request.
        poll_until(consumer, lambda: "/schemas/ids/1" in registry.paths())
        logs[1].append(value(2, id=2, name="b"))
        assert values(consumer, 1) == [{"id": 2, "name": "b"}]
        assert not len(consumer.poll(1))
        assert consumer.position(T0) == 0
        assert registry.paths().count("/schemas/ids/1") == 1
        registry.on("/schemas/ids/1", *known)
        registry.closing.set()
        assert values(consumer, 1) == [{"id": 1, "name": None}]


def test_a_consumer_that_waits_for_a_registry_can_be_closed(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    registry.on("/subjects/t-value/versions/latest", Reply(raw=b"", then=Then.HANG))
    logs[0].append(value(1, id=1))
    patient = avro(registry, schema_registry_timeout_ms=3_600_000)
    with consuming(broker, T0, **patient) as consumer:
        poll_until(consumer, lambda: bool(registry.asked))
        (waiting,) = consumer._decoding.typed._background._busy
    # The registry has not answered: closing the consumer has ended the wait.
    waiting.join(PATIENCE_MS / 1000)
    assert not waiting.is_alive()
    registry.closing.set()


# -- wrong arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "option", "text"),
    [
        ({"value_format": "avro"}, "schema_registry_url", "is missing, where 'value_format' is"),
        ({"value.format": "avro"}, "schema.registry.url", "is missing, where 'value.format' is"),
        ({"value_format": "arvo"}, "value_format", "found 'arvo'"),
        ({"bad_records": "null"}, "bad_records", "Give 'value_format' or 'key_format'"),
        ({"badRecords": "null"}, "badRecords", "keys and values are bytes"),
        ({"value_fromat": "avro"}, "value_fromat", "Did you mean 'value_format'?"),
        ({"schema_registry_ur": "x"}, "schema_registry_ur", "Did you mean 'schema_registry_url'?"),
        (
            {"schema_registry_basic_auth_credentials_source": "URL"},
            "schema_registry_basic_auth_credentials_source",
            "'schema_registry_basic_auth_user_info' is enough",
        ),
        ({"auto_register_schemas": True}, "auto_register_schemas", "is no configuration of this"),
        (
            {"value_format": "json", "value_schema": "id BIGNUM"},
            "value_schema",
            "cannot be used for reading",
        ),
        (
            {"value_format": "json", "value_schema": StructType().json()},
            "value_schema",
            "is a type of Spark in JSON, as df.schema.json() returns it. Give df.schema.simpleS",
        ),
        (
            {"value_format": "string", "value_deserializer": bytes.decode},
            "value_deserializer",
            "is given as well as 'value_format'",
        ),
    ],
)
def test_what_cannot_be_used_is_said_by_the_name_that_was_given(
    options: dict[str, Any], option: str, text: str
) -> None:
    with pytest.raises(ConfigurationError) as failed:
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", **options)
    assert failed.value.option == option
    assert text in str(failed.value)
    assert "kafka." not in str(failed.value)


def test_a_topic_without_a_subject_is_said_once_it_has_records(
    broker: MemoryBroker, logs: list[PartitionLog], registry: TestRegistry
) -> None:
    del registry.replies["/subjects/t-value/versions/latest"]
    with consuming(broker, T0, **avro(registry)) as consumer:
        assert not len(consumer.poll(0))
        logs[0].append(value(1, id=1))
        with pytest.raises(ConfigurationError, match=r"'value_schema_subject'.*is not given"):
            read(consumer, 1)


def test_the_password_is_in_no_text(broker: MemoryBroker) -> None:
    broker.create_topic("t")[0].append(value(1, id=1))
    with registry_server() as registry:
        registry.on("*", error(401, message="who is me:canary"))
        options = avro(registry, schema_registry_basic_auth_user_info=Secret("me:canary"))
        with consuming(broker, T0, **options) as consumer:
            assert "canary" not in repr(consumer._config)
            with pytest.raises(RegistryDeniedError) as failed:
                read(consumer, 1)
            assert "canary" not in str(failed.value)
