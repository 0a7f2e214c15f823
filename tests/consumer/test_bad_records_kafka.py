"""Records that cannot become objects on a real broker, beside Kafka's and confluent's consumers.

The same records come, the position is the same at each error, and the same offsets are committed.
"""

import datetime
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pyarrow as pa
import pytest
from confluent_kafka import deserializing_consumer as deserializing

from spark_kafka_source import KafkaConsumer, RecordDeserializationError, TopicPartition
from spark_kafka_source.client.serde_arguments import DESERIALIZE, serde
from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer
from tests.values.avro_oracle import written
from tools.java_program import JavaProgram, run_java

pytestmark = [pytest.mark.kafka, pytest.mark.java]

PATIENCE_SECONDS = 60
GOOD = 10
# One partition has a bad value between good ones, one has only good ones, one begins with a bad
# key and ends with a bad value.
VALUES = [b"0", b"1", b"bad", b"3", b"4"]
COUNT = 4 + GOOD + 2


@pytest.fixture(scope="module")
def java(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with run_java(Path(__file__).with_name("BadRecords.java"), kafka_jars) as program:
        yield program


@pytest.fixture
def filled(kafka: LocalKafka, topic: str) -> str:
    kafka.create_topic(topic, 3)
    with Producer(kafka.bootstrap_servers) as producer:
        producer.send(topic, 0, [Record(value=each) for each in VALUES])
        producer.send(topic, 1, [Record(value=b"%d" % each) for each in range(GOOD)])
        producer.send(topic, 2, [Record(key=b"bad", value=b"0"), Record(key=b"k", value=b"1")])
        producer.send(topic, 2, [Record(value=b"2"), Record(value=b"bad value")])
    return topic


def refusing(data: bytes) -> str:
    if data.startswith(b"bad"):
        raise ValueError("bad text")
    return data.decode()


def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


def sorted_texts(texts: list[str]) -> str:
    return ",".join(sorted(texts))


def consume(
    kafka: LocalKafka,
    topic: str,
    then: str,
    count: int,
    bad: int,
    *,
    protocol: str = "classic",
    **config: Any,
) -> str:
    """Do what `BadRecords.java` does, with our consumer, and return the same text."""
    records, errors = list[str](), list[str]()
    settings: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "group_id": group(),
        "group_protocol": protocol,
        "auto_offset_reset": "earliest",
    }
    serdes: dict[str, Any] = {"key_deserializer": refusing, "value_deserializer": refusing}
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    with KafkaConsumer(**settings, **serdes, **config) as consumer:
        consumer.subscribe([topic])
        while len(records) < count or len(errors) < bad:
            assert time.monotonic() < until_seconds, (records, errors)
            try:
                for each in consumer.poll(500):
                    records.append(f"{each.partition}:{each.offset}={each.value}")
            except RecordDeserializationError as failed:
                where = failed.topic_partition
                place = f"{where.partition}:{failed.offset} at {consumer.position(where)}"
                errors.append(f"{place} {failed.field}")
                if then == "seek":
                    consumer.seek(where, failed.offset + 1)
                else:
                    consumer.pause(where)
    with KafkaConsumer(**settings) as consumer:
        found = consumer.committed([TopicPartition(topic, each) for each in range(3)])
    committed = [f"{each.partition}={at.offset}" for each, at in found.items() if at is not None]
    return ";".join(map(sorted_texts, (records, errors, committed)))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("most", [500, 2, 1])
def test_after_a_seek_each_other_record_comes_once_as_in_java(
    kafka: LocalKafka, java: JavaProgram, filled: str, most: int, protocol: str
) -> None:
    asked = f"consume {kafka.bootstrap_servers} {filled} {group()} seek {most} {COUNT} 3"
    expected = java.ask(asked)
    found = consume(kafka, filled, "seek", COUNT, 3, protocol=protocol, max_poll_records=most)
    assert found == expected
    records, errors, _ = found.split(";")
    assert len(records.split(",")) == COUNT
    assert errors == "0:2 at 2 value,2:0 at 0 key,2:3 at 3 value"


@pytest.mark.parametrize("most", [500, 2])
def test_nothing_is_committed_beyond_a_bad_record_as_in_java(
    kafka: LocalKafka, java: JavaProgram, filled: str, most: int
) -> None:
    count = 2 + GOOD
    asked = f"consume {kafka.bootstrap_servers} {filled} {group()} pause {most} {count} 2"
    expected = java.ask(asked)
    found = consume(kafka, filled, "pause", count, 2, max_poll_records=most)
    assert found == expected
    assert found.endswith(";0:2 at 2 value,2:0 at 0 key;0=2,1=10,2=0")


@pytest.mark.parametrize("then", ["seek", "pause"])
@pytest.mark.parametrize("most", [500, 2])
def test_offsets_without_records_before_a_bad_one_are_as_in_java(
    kafka: LocalKafka, java: JavaProgram, topic: str, most: int, then: str
) -> None:
    """Each transaction ends with a marker, which takes an offset.

    A poll that returns records passes the marker after them if it looks at the next record, too.
    """
    kafka.create_topic(topic, 3)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic}
    producer = ck.Producer(settings)
    producer.init_transactions(PATIENCE_SECONDS)
    for values in (["0", "1"], ["bad"], ["5"], ["7", "bad again"]):
        producer.begin_transaction()
        for each in values:
            producer.produce(topic, each, partition=0)
        producer.commit_transaction(PATIENCE_SECONDS)
    count, bad = (4, 2) if then == "seek" else (2, 1)
    asked = f"consume {kafka.bootstrap_servers} {topic} {group()} {then} {most} {count} {bad}"
    found = consume(kafka, topic, then, count, bad, max_poll_records=most)
    assert found == java.ask(asked)
    assert found.split(";")[1].startswith(f"0:3 at {3 if most > 2 else 2} value")


def test_confluents_consumer_hands_out_the_same_and_goes_on_by_itself(
    kafka: LocalKafka, filled: str
) -> None:
    """Its position moves before the error. It needs no seek, and loses a record nobody looks at."""
    settings: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group(),
        "auto.offset.reset": "earliest",
        "key.deserializer": lambda data, _: None if data is None else refusing(data),
        "value.deserializer": lambda data, _: None if data is None else refusing(data),
    }
    theirs, bad = list[str](), set[str]()
    peer = deserializing.DeserializingConsumer(settings)
    peer.subscribe([filled])
    until_seconds = time.monotonic() + PATIENCE_SECONDS
    while len(theirs) < COUNT or len(bad) < 3:
        assert time.monotonic() < until_seconds, theirs
        try:
            message: Any = peer.poll(1)
        except (ck.error.KeyDeserializationError, ck.error.ValueDeserializationError) as failed:
            assert failed.kafka_message is not None
            bad.add(f"{failed.kafka_message.partition()}:{failed.kafka_message.offset()}")
            continue
        if message is not None:
            theirs.append(f"{message.partition()}:{message.offset()}={message.value()}")
    peer.close()
    assert bad == {"0:2", "2:0", "2:3"}
    records = consume(kafka, filled, "seek", COUNT, 3).split(";")[0]
    assert records == sorted_texts(theirs)


# -- times that Python has no object for -----------------------------------------------------------


ROW = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "days",
            "type": {"type": "array", "items": {"type": "int", "logicalType": "date"}},
        },
        {"name": "time", "type": {"type": "long", "logicalType": "time-micros"}},
    ],
}
INFINITY = 9223372036825200000  # PostgreSQL's, as Debezium writes it.


@pytest.mark.parametrize("policy", ["fail", "null", "skip"])
def test_records_of_any_time_come_as_objects_and_as_columns(
    kafka: LocalKafka, topic: str, policy: str
) -> None:
    kafka.create_topic(topic)
    rows = [{"at": each, "days": [0, 2932897], "time": 90_000_000_000} for each in (0, INFINITY, 1)]
    with Producer(kafka.bootstrap_servers) as producer:
        producer.send(topic, 0, [Record(value=each) for each in written(ROW, rows)])
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        auto_offset_reset="earliest",
        value_format="avro",
        value_schema=json.dumps(ROW),
        bad_records=policy,
    ) as consumer:
        consumer.subscribe([topic])
        values: list[Any] = []
        tables: list[Any] = []
        until_seconds = time.monotonic() + PATIENCE_SECONDS
        while len(values) < 3:
            assert time.monotonic() < until_seconds
            records = consumer.poll(500)
            values += [each.value for each in records]
            tables += [records.to_arrow()] if len(records) else []
    assert [str(each["at"]) for each in values] == [
        "1970-01-01 00:00:00+00:00",
        "+294247-01-10T04:00:25.200000Z",
        "1970-01-01 00:00:00.000001+00:00",
    ]
    for each in values:
        assert each["days"] == [datetime.date(1970, 1, 1), "+10000-01-01"]
        assert each["time"] == "+25:00:00.000000"
    column = pa.concat_tables(tables)["value"].combine_chunks().field("at")
    assert column.cast(pa.int64()).to_pylist() == [0, INFINITY, 1]


# -- Kafka's own deserializers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *[("String", each) for each in (b"", b"a", "é".encode())],
        *[("Short", each) for each in (b"", b"\xff\xfe", b"\0\0\0")],
        *[("Integer", each) for each in (b"\0\0\0", b"\x80\0\0\0", b"\0\0\0\7\0")],
        *[("Long", each) for each in (b"", b"\x80" + bytes(7), b"\0" * 4)],
        *[("Float", each) for each in (b"\x3f\xc0\0\0", b"\0" * 8)],
        *[("Double", each) for each in (b"\xbf\xf8" + bytes(6), b"\0" * 4)],
        *[("Boolean", each) for each in (b"\0", b"\1", b"\2", b"", b"\1\1")],
        *[("UUID", each) for each in (b"00000000-0000-0000-0000-000000000005", b"x")],
    ],
)
def test_named_deserializers_return_what_java_deserializers_return(
    java: JavaProgram, name: str, data: bytes
) -> None:
    found = serde("value_deserializer", f"{name}Deserializer", DESERIALIZE, {})
    assert found is not None
    try:
        value = found.call("t", (), data)
        ours = f"made {str(value).lower() if name == 'Boolean' else value}"
    except Exception:
        ours = "refused"
    assert java.ask(f"deserialize {name} {data.hex()}".strip()) == ours
