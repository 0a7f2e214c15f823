"""Bad records as letters in a topic, through Spark's batches and streams on a real broker.

The letters are read by confluent-kafka.
"""

import json
import re
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.registry import RegistryClient
from spark_kafka_source.testing import LocalKafka, LocalRegistry
from spark_kafka_source.values import SchemaText, SchemaType
from tests.documentation.pages import DOCS, under
from tests.spark.sink.written import Written, texts, written
from tests.spark.typed_rows import V1, V2, framed, put, register, typed
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events, Headers, Writer, batch, failure, stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.usefixtures("spark")]

AT_MS = 1_700_000_000_123
DDL = {"value.format": "json", "value.schema": "id BIGINT"}
(SENDING,) = (each.source for each in under(DOCS / "typed-values.md", "Dead letters"))
(READING, SENDING_BACK) = (
    each.source
    for each in under(DOCS / "contributors" / "formats-in-detail.md", "Letters in detail")
)
OF_CONNECT, OF_US = "__connect.errors.", "__pykafka.errors."


@pytest.fixture
def letters(events: Events) -> Events:
    found = events.another("letters")
    found.create(1)
    return found


def to_letters(events: Events, letters: Events, **more: object) -> dict[str, Any]:
    """Return options of a source of JSON whose bad records become letters."""
    topic = {"badRecords": "topic", "badRecords.topic": letters.name}
    return events.options(**DDL | topic | more)


def put_json(events: Events, *values: bytes | None) -> None:
    """Write values to partition 0. The tests' bad ones are `b"?..."`."""
    put(events, *values)


def ids(frame: DataFrame) -> list[Any]:
    rows = frame.selectExpr("partition", "offset", "value.id").collect()
    return [row.id for row in sorted(rows, key=lambda row: (row.partition, row.offset))]


def added(letter: Written) -> dict[str, str]:
    """Return the headers that say what is wrong."""
    own = (OF_CONNECT, OF_US)
    return {
        name: (value or b"").decode()
        for name, value in letter.headers or ()
        if name.startswith(own)
    }


def own_headers(letter: Written) -> Headers:
    """Return the headers that the record had."""
    count = len(letter.headers or ()) - len(added(letter))
    return (letter.headers or [])[:count]


def offsets(letters: Events) -> list[int]:
    """Return the offsets of the records that the letters were, sorted."""
    return sorted(int(added(each)[f"{OF_CONNECT}offset"]) for each in written(letters))


def test_a_letter_is_the_record_with_headers_that_say_what_is_wrong(
    spark: SparkSession,
    events: Events,
    letters: Events,
    real_registry: LocalRegistry,
    client: RegistryClient,
) -> None:
    events.create(2)
    id = register(client, events, V1)
    (good,) = framed(id, V1, {"id": 1})
    named = ("__value_schema_id", struct.pack(">bi", 0, id))
    headers: Headers = [("a", b"1"), ("a", None), named, ("b", bytes(range(256)))]
    bad: list[tuple[bytes | None, bytes, Headers]] = [
        (b"k", good + b"!", [("trace", b"x")]),
        (None, good[5:] + b"?", headers),
        (b"", b"", []),
        (b"\xff", b"\0\0", [("c", b"")]),
    ]
    with Writer(events.kafka.bootstrap_servers) as queue:
        queue.queue(events.name, good, partition=1, key=b"k")
        for key, value, pairs in bad:
            queue.queue(events.name, value, partition=1, key=key, headers=pairs, timestamp_ms=AT_MS)
        queue.queue(events.name, None, partition=1, headers=headers)
        queue.queue(events.name, good[5:], partition=1, headers=[named])
    topic = {"badRecords": "topic", "badRecords.topic": letters.name}
    found = batch(spark, typed(events, real_registry.url, **topic))
    assert found.schema.names == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    ]
    assert ids(found) == [1, None, 1]
    sent = written(letters)
    assert [(each.key, each.value, own_headers(each)) for each in sent] == bad
    assert {each.timestamp_ms for each in sent} == {AT_MS}
    for number, each in enumerate(sent, 1):
        assert (
            added(each).items()
            >= {
                f"{OF_CONNECT}topic": events.name,
                f"{OF_CONNECT}partition": "1",
                f"{OF_CONNECT}offset": str(number),
                f"{OF_CONNECT}stage": "VALUE_CONVERTER",
                f"{OF_CONNECT}exception.class.name": "spark_kafka_source.BadRecordError",
                f"{OF_US}timestamp": str(AT_MS),
            }.items()
        )
    schemas = [added(each).get(f"{OF_US}schema.id") for each in sent]
    assert schemas == [str(id), str(id), None, None]
    messages = [added(each)[f"{OF_CONNECT}exception.message"] for each in sent]
    assert messages[0] == (
        f"the value cannot be decoded: schema {id}: there are bytes after the record"
    )
    assert messages[2] == "the value cannot be decoded: no schema id, found only 0 bytes"


@pytest.mark.parametrize("columns", ["key,value,offset,partition", "offset,partition,value"])
def test_a_bad_key_makes_a_letter_if_keys_are_read(
    spark: SparkSession, events: Events, letters: Events, columns: str
) -> None:
    """A record with a bad key and a bad value is one letter. No column is needed for a letter."""
    events.create(1)
    with Writer(events.kafka.bootstrap_servers) as queue:
        for key, value in (
            (b"a", b'{"id": 1}'),
            (b"\xff", b'{"id": 2}'),
            (b"b", b"?3"),
            (b"\xfe", b"?4"),
            (None, None),
        ):
            queue.queue(events.name, value, key=key, headers=[("n", value)])
    options = to_letters(events, letters, **{"key.format": "string", "columns": columns})
    is_read = columns.startswith("key")
    assert ids(batch(spark, options)) == ([1, None] if is_read else [1, 2, None])
    sent = written(letters)
    assert [(each.key, each.value) for each in sent] == (
        [(b"\xff", b'{"id": 2}')] * is_read + [(b"b", b"?3"), (b"\xfe", b"?4")]
    )
    assert [own_headers(each) for each in sent] == [[("n", each.value)] for each in sent]
    if is_read:
        stages = [added(each)[f"{OF_CONNECT}stage"] for each in sent]
        assert stages == ["KEY_CONVERTER", "VALUE_CONVERTER", "VALUE_CONVERTER"]


def test_a_stream_sends_each_letter_once(events: Events, letters: Events, start: Start) -> None:
    """Nothing is sent again after a restart. Each micro-batch of two tasks has letters."""
    spark = SparkSession.active()
    events.create(2)
    seen: list[Any] = []

    def run() -> None:
        frame = stream(spark, to_letters(events, letters))
        writer = frame.writeStream.foreachBatch(lambda rows, _: seen.extend(ids(rows)))
        assert start(writer.trigger(availableNow=True)).awaitTermination(TIMEOUT_SECONDS)

    for first in (0, 10, 20):
        for partition in (0, 1):
            values = [f'{{"id": {first + 5 * partition}}}', f"?{first + partition}"]
            events.write(values, partition)
        run()
    run()
    assert seen == [0, 5, 10, 15, 20, 25]
    assert texts(letters) == ["?0", "?1", "?10", "?11", "?20", "?21"]


def test_a_micro_batch_that_runs_again_loses_no_letter(
    events: Events, letters: Events, start: Start
) -> None:
    """A letter may be there once for each time that its range was read."""
    spark = SparkSession.active()
    events.create(1)
    put_json(events, b'{"id": 1}', b"?1", b'{"id": 2}', b"?2")
    seen: list[Any] = []

    def fail_once(rows: DataFrame, _: int) -> None:
        found = ids(rows)
        if not seen:
            seen.append("failed")
            raise RuntimeError("the sink is full")
        seen.extend(found)

    for is_last in (False, True):
        frame = stream(spark, to_letters(events, letters))
        query = start(frame.writeStream.foreachBatch(fail_once).trigger(availableNow=True))
        if is_last:
            assert query.awaitTermination(TIMEOUT_SECONDS)
        else:
            assert "the sink is full" in failure(query)
    assert seen == ["failed", 1, 2]
    assert Counter(texts(letters)) == {"?1": 2, "?2": 2}


@pytest.mark.parametrize("count", [1, 30_000])
def test_garbage_alone(spark: SparkSession, events: Events, letters: Events, count: int) -> None:
    events.create(1)
    put_json(events, *(b"?%d" % number for number in range(count)))
    assert batch(spark, to_letters(events, letters)).count() == 0
    assert offsets(letters) == [*range(count)]


def test_one_bad_record_in_a_hundred_thousand(
    spark: SparkSession, events: Events, letters: Events
) -> None:
    events.create(1)
    bad = 61_803
    good = [f'{{"id": {number}}}' for number in range(100_000)]
    for values in (good[:bad], ["?"], good[bad:]):
        events.write(values)
    found = batch(spark, to_letters(events, letters)).selectExpr("value.id")
    totals = found.selectExpr("count(*)", "count(id)", "sum(id)").collect()
    assert tuple(totals[0]) == (100_000, 100_000, sum(range(100_000)))
    assert offsets(letters) == [bad]


def test_without_bad_records_nothing_is_sent(
    spark: SparkSession, events: Events, letters: Events
) -> None:
    events.create(1)
    assert batch(spark, to_letters(events, letters)).count() == 0
    put_json(events, b'{"id": 1}', None)
    assert ids(batch(spark, to_letters(events, letters))) == [1, None]
    assert written(letters) == []


def test_records_of_aborted_transactions_are_no_letters(
    spark: SparkSession, events: Events, letters: Events
) -> None:
    events.create(1)
    with Writer(events.kafka.bootstrap_servers, transactional_id=events.name) as queue:
        queue.producer.init_transactions()
        for end, values in (
            (queue.producer.abort_transaction, [b"?aborted", b'{"id": 1}']),
            (queue.producer.commit_transaction, [b"?committed", b'{"id": 2}']),
        ):
            queue.producer.begin_transaction()
            for value in values:
                queue.queue(events.name, value)
            queue.flush()
            queue.end_transaction(events.name, end)
    options = to_letters(events, letters, **{"kafka.isolation.level": "read_committed"})
    assert ids(batch(spark, options)) == [2]
    assert texts(letters) == ["?committed"]


def test_a_letter_goes_to_the_partition_of_its_key(spark: SparkSession, events: Events) -> None:
    """It is the one that a producer with Java's partitioner chooses: here, librdkafka's."""
    letters, same = events.another("three"), events.another("same")
    for each in (letters, same):
        each.create(3)
    events.create(1)
    keys = [b"key %d" % number for number in range(30)]
    with (
        Writer(events.kafka.bootstrap_servers) as queue,
        Writer(events.kafka.bootstrap_servers, partitioner="murmur2_random") as judge,
    ):
        for key in keys:
            queue.queue(events.name, b"?", key=key)
            judge.queue(same.name, b"?", key=key, partition=-1)
    assert batch(spark, to_letters(events, letters)).count() == 0
    chosen, expected = (
        {each.key: each.partition for each in written(topic)} for topic in (letters, same)
    )
    assert chosen == expected
    assert len(chosen) == len(keys)


def test_the_page(
    events: Events,
    real_registry: LocalRegistry,
    client: RegistryClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Letters are read again once the schema is mended, and go back as they were."""
    spark, letters = SparkSession.active(), events.another("letters")
    letters.create(1)
    events.create(1)
    old = client.register(f"{events.name}-old", SchemaText(SchemaType.AVRO, json.dumps(V1)))
    strict = {**V2, "fields": [V2["fields"][0], {"name": "kind", "type": "string"}]}
    new = register(client, events, strict)
    with Writer(events.kafka.bootstrap_servers) as queue:
        good, bad = *framed(new, strict, {"id": 1, "kind": "a"}), *framed(old, V1, {"id": 2})
        queue.queue(events.name, good, key=b"g")
        queue.queue(events.name, bad, key=b"b", headers=[("n", b"1")], timestamp_ms=AT_MS)
    names = {
        "broker:9092": events.kafka.bootstrap_servers,
        "https://registry:8081": real_registry.url,
        '"events': f'"{events.name}',
        '"dead-letters"': f'"{letters.name}"',
        '"/': f'"{tmp_path}/',
    }
    known: dict[str, Any] = {"spark": spark}

    def run(example: str) -> None:
        for name, own in names.items():
            example = example.replace(name, own)
        exec(compile(example, "a page", "exec"), known)  # our own page

    run(SENDING)
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
    table = spark.read.parquet(f"{tmp_path}/tables/events")
    assert [tuple(row) for row in table.collect()] == [("g", 1, "a")]
    assert [(each.key, each.value) for each in written(letters)] == [(b"b", bad)]
    register(client, events, V2)
    run(READING)
    (shown,) = re.findall(r"\|( *2 *\|.*)\|", capsys.readouterr().out)
    assert [each.strip() for each in shown.split("|")] == ["2", "none", "NULL", events.name, "1"]
    run(SENDING_BACK)
    _, first, again = written(events)
    assert again == first
    assert own_headers(first) == [("n", b"1")]


# -- what is refused ------------------------------------------------------------------------------


def refused(spark: SparkSession, options: dict[str, Any], reader: str = "batch") -> str:
    """Return the error of `load`."""
    with pytest.raises(PySparkException) as failed:
        (batch if reader == "batch" else stream)(spark, options)
    return str(failed.value)


@pytest.mark.parametrize("reader", ["batch", "stream"])
def test_a_topic_that_does_not_exist_is_refused_at_load(
    spark: SparkSession, events: Events, reader: str
) -> None:
    events.create(1)
    missing = events.another("missing")
    text = refused(spark, to_letters(events, missing), reader)
    assert "Option 'badRecords.topic': topic" in text
    assert f"'{missing.name}' does not exist. Create it, as with" in text


@pytest.mark.parametrize(
    ("name", "text"), [("a b", "cannot be a topic's name"), ("", "is empty"), (None, "is missing")]
)
def test_a_name_that_names_no_topic(
    spark: SparkSession, events: Events, name: str | None, text: str
) -> None:
    events.create(1)
    found = refused(spark, events.options(**DDL, badRecords="topic", **{"badRecords.topic": name}))
    assert f"Option 'badRecords.topic': {text}" in found.replace("'a b' ", "")


@pytest.mark.parametrize("strategy", ["assign", "subscribe", "subscribePattern"])
def test_a_topic_that_is_read_is_refused(
    spark: SparkSession, events: Events, letters: Events, strategy: str
) -> None:
    """A pattern may match a topic that does not exist yet, so its name alone decides."""
    events.create(1)
    both = {
        "assign": json.dumps({events.name: [0], letters.name: [0]}),
        "subscribe": f"{events.name},{letters.name}",
        "subscribePattern": f"^{events.name}",
    }
    options = to_letters(events, letters, subscribe=None) | {strategy: both[strategy]}
    text = f"Option 'badRecords.topic': '{letters.name}' is also read from"
    assert text in refused(spark, options)
    if strategy == "subscribePattern":
        to_come = events.another("to-come")
        assert "is also read from" in refused(spark, options | {"badRecords.topic": to_come.name})
        put_json(events, b"?")
        only = options | {"subscribePattern": f"^{events.name}$"}
        assert batch(spark, only).count() == 0
        assert len(written(letters)) == 1


def test_a_letter_that_the_broker_refuses_fails_the_task_and_no_record_is_lost(
    events: Events, start: Start
) -> None:
    """The error names the option, the record, and what would be right."""
    spark = SparkSession.active()
    small = events.another("small")
    small.create(1, max_message_bytes="2000")
    events.create(1)
    put_json(events, b'{"id": 1}', b"?small", b"?" * 5_000, b'{"id": 2}')
    seen: list[Any] = []
    frame = stream(spark, to_letters(events, small))
    writing = frame.writeStream.foreachBatch(lambda rows, _: seen.extend(ids(rows)))
    text = failure(start(writing.trigger(availableNow=True)))
    assert f"{events.name}-0, offset 2: bad records were not written to topic" in text
    assert f"'{small.name}', which 'badRecords.topic' names: Produce to {small.name}-0" in text
    assert "is over the topic's 'max.message.bytes'. Raise that" in text
    assert seen == []
    large = events.another("large")
    large.create(1)
    frame = stream(spark, to_letters(events, large))
    writing = frame.writeStream.foreachBatch(lambda rows, _: seen.extend(ids(rows)))
    assert start(writing.trigger(availableNow=True)).awaitTermination(TIMEOUT_SECONDS)
    assert seen == [1, 2]
    assert offsets(large) == [1, 2]


def test_a_letter_may_be_larger_than_a_request_by_default(
    spark: SparkSession, kafka: LocalKafka, events: Events
) -> None:
    """The topic's own limit counts, and not that of a producer."""
    large = events.another("large")
    for topic in (events, large):
        topic.create(1, max_message_bytes=str(8 << 20))
    value = b"?" * (5 << 20)
    with Writer(kafka.bootstrap_servers, message_max_bytes=8 << 20) as queue:
        queue.queue(events.name, value)
    assert batch(spark, to_letters(events, large)).count() == 0
    assert [each.value == value for each in written(large)] == [True]
