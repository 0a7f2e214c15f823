"""A user's features with each Spark and each Kafka. Errors name features that a Spark lacks."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Partition
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import expr

import spark_kafka_source
from spark_kafka_source.testing import LocalKafka
from tests.registry.server import Reply, registry_server, version
from tests.spark.sink.written import Written, texts, to, writer, written
from tests.spark_session import Run, Start
from tools.traffic import (
    TIMEOUT_SECONDS,
    Batches,
    Events,
    Writer,
    batch,
    failure,
    stream,
    values,
    wait_until,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    # Spark 4.0 leaves the sockets of rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed .socket:ResourceWarning"),
]

# By the version, independent of our code's own detection.
FROM_SPARK_4_2 = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 2)
NOON_MS = 1_700_000_000_000

BY_ITSELF = """
import json, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "OFF").getOrCreate()
options = json.loads(sys.argv[1])
rows = spark.read.format("pykafka").options(**options).load().selectExpr("CAST(value AS STRING)")
stream = spark.readStream.format("pykafka").options(**options).load()
print(json.dumps([sorted(row.value for row in rows.collect()), stream.columns]))
"""


def plain(value: Any) -> Any:
    """Return a cell in Python's own types: Spark versions differ in the type of bytes."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, Row | list):
        return [plain(each) for each in value]
    return value


def committed(events: Events) -> list[int]:
    """Return the committed offsets of the group with the topic's name, for each partition."""
    servers = events.kafka.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": servers, "group.id": events.name, "log_level": 0})
    wanted = [Partition(events.name, number) for number in range(events.partitions)]
    found = consumer.committed(wanted, timeout=TIMEOUT_SECONDS)
    consumer.close()
    return [partition.offset for partition in found]


def test_a_batch_of_a_range_has_all_columns(session: SparkSession, events: Events) -> None:
    events.create(2)
    with Writer(events.kafka.bootstrap_servers) as writer:
        for offset in range(6):
            writer.queue(events.name, b"skipped", timestamp_ms=NOON_MS)
            writer.queue(
                events.name,
                b"v%d" % offset if offset % 2 else None,
                partition=1,
                key=b"k%d" % offset,
                headers=[("a", b"1"), ("a", None)] if offset % 2 else [],
                timestamp_ms=NOON_MS + offset,
            )
    frame = batch(
        session,
        events.options(
            startingOffsets=events.offsets(6, 2),
            endingOffsets=events.offsets(-1, 4),
            includeHeaders="true",
        ),
    )
    rows = frame.withColumn("timestamp", frame.timestamp.cast("double")).orderBy("offset")
    name, noon = events.name, NOON_MS / 1000
    assert [plain(row) for row in rows.collect()] == [
        [b"k2", None, name, 1, 2, noon + 0.002, 0, None],
        [b"k3", b"v3", name, 1, 3, noon + 0.003, 0, [["a", b"1"], ["a", None]]],
    ]
    assert frame.count() == 2


def test_a_batch_by_time_without_what_was_aborted(session: SparkSession, events: Events) -> None:
    events.create()
    writer = Writer(events.kafka.bootstrap_servers, transactional_id=events.name)
    writer.producer.init_transactions(TIMEOUT_SECONDS)
    for number, end in enumerate(("commit", "abort", "commit")):
        writer.producer.begin_transaction()
        writer.write(events.name, [f"{number} {end}"], timestamp_ms=NOON_MS + number)
        writer.end_transaction(events.name, getattr(writer.producer, f"{end}_transaction"))
    found = events.options(startingTimestamp=NOON_MS + 1)
    assert values(batch(session, found)) == ["1 abort", "2 commit"]
    assert values(batch(session, found | {"kafka.isolation.level": "read_committed"})) == [
        "2 commit"
    ]


def test_a_stream_goes_on_from_its_checkpoint(
    session: SparkSession, events: Events, run: Run
) -> None:
    events.fill(3, 2)
    frame = stream(session, events.options())
    sink = Batches()
    run(frame, sink)
    events.write(["later"], 1)
    run(frame, sink)
    run(frame, sink)
    assert [rows for _, rows in sink.seen if rows] == [
        ["0:0", "0:1", "0:2", "1:0", "1:1"],
        ["later"],
    ]


def test_a_stream_follows_what_is_written(
    session: SparkSession, events: Events, start: Start
) -> None:
    events.create(2)
    sink = Batches()
    query = start(stream(session, events.options()).writeStream.foreachBatch(sink))
    for letter in "abc":
        events.write([f"{letter}0"] * 2)
        events.write([f"{letter}1"], 1)
        query.processAllAvailable()
        assert sink.values[-3:] == [f"{letter}0", f"{letter}0", f"{letter}1"]
    assert len(sink.values) == 9


def test_a_stream_from_the_latest_has_only_what_comes_after(
    session: SparkSession, events: Events, run: Run
) -> None:
    events.fill(3, 2)
    frame = stream(session, events.options(startingOffsets="latest"))
    sink = Batches()
    run(frame, sink)
    assert sink.values == []
    events.write(["later"])
    run(frame, sink)
    assert sink.values == ["later"]


def test_progress_is_committed_and_a_query_starts_from_it(
    session: SparkSession, events: Events, run: Run, start: Start
) -> None:
    events.fill(3, 2)
    found = events.options() | {"kafka.group.id": events.name}
    frame = stream(session, found)
    run(frame, Batches())
    events.write(["later"], 1)
    run(frame, Batches())
    # Before 4.2, Spark reports a finished micro-batch only when it plans the next one.
    assert committed(events) == ([3, 3] if FROM_SPARK_4_2 else [3, 2])
    events.write(["last"])
    sink = Batches()
    rest = stream(session, found | {"startingOffsets": "committed"})
    writing = rest.writeStream.foreachBatch(sink).trigger(availableNow=True)
    assert start(writing, "another checkpoint").awaitTermination(TIMEOUT_SECONDS)
    assert sink.values == (["last"] if FROM_SPARK_4_2 else ["last", "later"])


def test_a_batch_is_written_with_all_columns(session: SparkSession, events: Events) -> None:
    events.create(2)
    ddl = "key string, value binary, partition int, timestamp timestamp, headers {headers}"
    frame = session.createDataFrame(
        [
            ("k", b"v", 1, datetime.fromtimestamp(NOON_MS / 1000, UTC), [("a", b"1"), ("a", None)]),
            (None, None, 0, datetime.fromtimestamp(NOON_MS / 1000, UTC), None),
        ],
        ddl.format(headers="array<struct<key: string, value: binary>>"),
    )
    writer(frame, to(events)).save()
    assert written(events) == [
        Written(0, None, None, None, NOON_MS),
        Written(1, b"k", b"v", [("a", b"1"), ("a", None)], NOON_MS),
    ]
    with pytest.raises(PySparkException, match="Column 'value' is of the type bigint"):
        writer(session.range(1).selectExpr("id AS value"), to(events)).save()


def test_a_stream_writes_and_goes_on_from_its_checkpoint(
    session: SparkSession, events: Events, start: Start
) -> None:
    events.fill(3, 2)
    target = events.another("target")
    target.create(2)
    read = stream(session, events.options()).select("value")

    def run() -> None:
        writing = read.writeStream.format("pykafka").options(**to(target))
        assert start(writing.trigger(availableNow=True)).awaitTermination(TIMEOUT_SECONDS)

    run()
    assert texts(target) == ["0:0", "0:1", "0:2", "1:0", "1:1"]
    events.write(["later"])
    run()
    run()
    assert texts(target) == ["0:0", "0:1", "0:2", "1:0", "1:1", "later"]


def test_rows_are_written_exactly_once(
    session: SparkSession, events: Events, start: Start, tmp_path: Path
) -> None:
    """A stream, and `foreachBatch` with repeated micro-batches. At the end a batch write."""
    events.fill(3, 2)
    copies = [events.another(each) for each in ("streamed", "foreach")]
    read = stream(session, events.options()).select("value")

    def save(frame: DataFrame, _: int) -> None:
        writer(frame, exactly(copies[1])).save()

    for copy in copies:
        copy.create(2)
    for _ in range(2):
        by_stream = read.writeStream.format("pykafka").options(**exactly(copies[0]))
        for writing in (by_stream, read.writeStream.foreachBatch(save)):
            checkpoint = f"checkpoint-{writing is by_stream}"
            query = start(writing.trigger(availableNow=True), checkpoint)
            assert query.awaitTermination(TIMEOUT_SECONDS)
            for path in (tmp_path / checkpoint / "commits").iterdir():
                path.unlink()
    for copy in copies:
        given = copy.options() | {"kafka.isolation.level": "read_committed"}
        wait_until(lambda: len(values(batch(session, given))) >= 5)  # noqa: B023 - called now
        assert sorted(values(batch(session, given))) == ["0:0", "0:1", "0:2", "1:0", "1:1"]
    writer(batch(session, events.options()).select("value"), exactly(copies[0])).save()
    assert len(values(batch(session, copies[0].options()))) >= 10


def test_values_are_columns_both_ways(session: SparkSession, events: Events, run: Run) -> None:
    """Batch and stream read the written Avro values. A malformed value keeps its bytes."""
    events.create(1)
    rows = session.range(3).coalesce(1)
    frame = rows.selectExpr(
        """named_struct('id', id, 'amount', CAST(id AS DECIMAL(10, 2)), 'tags', array('a', NULL),
        'at', timestamp_seconds(id), 'in', named_struct('x', IF(id = 1, NULL, 'y'))) AS value"""
    )
    subject = f"/subjects/{events.name}-value"
    with registry_server() as registry:
        registry.on(f"{subject}/versions", Reply(json={"id": 7}))
        of_values = {"value.format": "avro", "schema.registry.url": registry.url}
        writer(frame, to(events, **of_values, **{"auto.register.schemas": "true"})).save()
        text = registry.asked[-1].json["schema"]
        registry.on(f"{subject}/versions/latest", version(text, 7))
        events.write(["broken"])
        given = events.options(badRecords="null", **of_values)
        found = batch(session, given)
        types = [each.schema["value"].dataType.simpleString() for each in (found, frame)]
        assert types[0] == types[1]
        read = found.orderBy("offset").collect()
        sink = Batches()
        bad = "value_error IS NOT NULL"
        letters = stream(session, given).where(bad).withColumn("value", expr("value_error.bytes"))
        run(letters, sink)
    assert [row.value for row in read] == [*(row.value for row in frame.collect()), None]
    assert [plain(row.value_error) for row in read] == [
        *[None] * 3,
        ["no schema id, found 62", None, b"broken"],
    ]
    assert sink.values == ["broken"]


def exactly(target: Events) -> dict[str, Any]:
    return to(target, deliveryGuarantee="exactly-once")


def test_a_topic_made_anew_is_data_loss_of_that_name(
    session: SparkSession, events: Events, run: Run, start: Start
) -> None:
    events.fill(3)
    frame = stream(session, events.options())
    run(frame, Batches())
    events.delete()
    events.create()
    events.write(["anew"] * 5)
    writing = frame.writeStream.foreachBatch(Batches()).trigger(availableNow=True)
    assert "[KAFKA_DATA_LOSS.PARTITIONS_DELETED]" in failure(start(writing))
    sink = Batches()
    run(stream(session, events.options(failOnDataLoss="false")), sink)
    assert sink.values == ["anew"] * 5


def test_registering_again_changes_nothing(session: SparkSession, events: Events) -> None:
    events.fill(1)
    spark_kafka_source.register(session)
    assert values(batch(session, events.options())) == ["0:0"]


def test_spark_finds_it_by_itself(kafka: LocalKafka, topic: str, tmp_path: Path) -> None:
    events = Events(kafka, topic)
    events.fill(2)
    path = os.pathsep.join(sys.path)
    shown = subprocess.run(
        [sys.executable, "-c", BY_ITSELF, json.dumps(events.options())],
        env=os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    ).stdout
    rows, columns = json.loads(shown)
    assert rows == ["0:0", "0:1"]
    assert columns[:3] == ["key", "value", "topic"]
