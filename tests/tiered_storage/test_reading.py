"""Topics whose older segments are only in remote storage are read whole, row by row as written."""

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source import KafkaAdmin, KafkaConsumer, OffsetSpec, TopicPartition, read_topic
from spark_kafka_source.command_line.main import main
from tests.spark_session import Run
from tests.tiered_storage.tiered import FIRST_MS, PARTITIONS, STEP_MS, Row, TieredKafka, Written
from tools.traffic import Batches, batch

pytestmark = [pytest.mark.kafka, pytest.mark.long]

TOPIC = "events"
WHERE = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
MOSTLY_REMOTE = 1_000
# Records have times by turns of the partitions: both begin at this offset.
START = 300
START_MS = FIRST_MS + START * PARTITIONS * STEP_MS


@pytest.fixture(scope="module")
def local_starts() -> list[int]:
    """Return the first offset of each partition that is on the broker's disk."""
    return []


@pytest.fixture(scope="module")
def written(tiered: TieredKafka, local_starts: list[int]) -> Written:
    """Write in two leader epochs, with committed and aborted transactions in remote segments."""
    tiered.create_topic(TOPIC)
    written = Written(tiered, TOPIC)
    written.write(400)
    written.write_in_transaction(100, commit=False)
    written.write_in_transaction(100, commit=True)
    tiered.restart()
    written.write(400, compression="zstd")
    written.write_in_transaction(50, commit=False)
    written.write(650, compression="lz4")
    local_starts += tiered.wait_for_tiering(TOPIC)
    assert min(local_starts) > MOSTLY_REMOTE
    return written


def of_table(table: pa.Table) -> list[Row]:
    return [
        (
            each["partition"],
            each["offset"],
            each["key"],
            each["value"],
            round(each["timestamp"].timestamp() * 1000),
            tuple((one["key"], one["value"]) for one in each["headers"] or ()),
        )
        for each in table.to_pylist()
    ]


def of_frame(frame: DataFrame) -> list[Row]:
    return [
        (
            each.partition,
            each.offset,
            None if each.key is None else bytes(each.key),
            None if each.value is None else bytes(each.value),
            each.at,
            tuple(
                (one.key, None if one.value is None else bytes(one.value))
                for one in each.headers or ()
            ),
        )
        for each in frame.selectExpr("*", "unix_millis(timestamp) AS at").collect()
    ]


def options(tiered: TieredKafka, **more: Any) -> dict[str, Any]:
    return {
        "kafka.bootstrap.servers": tiered.servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "includeHeaders": True,
        **more,
    }


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_table(tiered: TieredKafka, written: Written, level: str) -> None:
    found = of_table(read_topic(TOPIC, bootstrap_servers=tiered.servers, isolation_level=level))
    more = written.aborted if level == "read_uncommitted" else []
    assert found == sorted(written.rows + more, key=lambda row: row[:2])


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_consumer(tiered: TieredKafka, written: Written, level: str) -> None:
    found: list[Row] = []
    with KafkaConsumer(bootstrap_servers=tiered.servers, isolation_level=level) as consumer:
        consumer.assign(WHERE)
        consumer.seek_to_beginning(*WHERE)
        ends = consumer.end_offsets(WHERE)
        while any(consumer.position(each) < end for each, end in ends.items()):
            found += [
                (
                    each.partition,
                    each.offset,
                    each.key,
                    each.value,
                    each.timestamp_ms or 0,
                    tuple(each.headers),
                )
                for each in consumer.poll(1_000)
            ]
    more = written.aborted if level == "read_uncommitted" else []
    assert sorted(found, key=lambda row: row[:2]) == sorted(
        written.rows + more, key=lambda row: row[:2]
    )


def test_from_a_time_on(tiered: TieredKafka, written: Written) -> None:
    start = f"{pa.scalar(START_MS, pa.timestamp('ms')).as_py().isoformat()}Z"
    found = of_table(read_topic(TOPIC, start=start, bootstrap_servers=tiered.servers))
    assert found[0][1] == START
    assert found == rows_from(START_MS, written)


def rows_from(start_ms: int, written: Written) -> list[Row]:
    """Return the rows from a time on, which must be before the first end of a transaction.

    The markers of transactions have the broker's time, which is later than that of all records.
    """
    found = [row for row in written.rows + written.aborted if row[4] >= start_ms]
    return sorted(found, key=lambda row: row[:2])


@pytest.mark.spark
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_a_batch(spark: SparkSession, tiered: TieredKafka, written: Written, level: str) -> None:
    given = options(tiered, **{"kafka.isolation.level": level, "minPartitions": 6})
    more = written.aborted if level == "read_uncommitted" else []
    found = sorted(of_frame(batch(spark, given)), key=lambda row: row[:2])
    assert found == sorted(written.rows + more, key=lambda row: row[:2])


@pytest.mark.spark
def test_a_batch_from_a_time_on(spark: SparkSession, tiered: TieredKafka, written: Written) -> None:
    given = options(tiered, startingTimestamp=str(START_MS))
    found = sorted(of_frame(batch(spark, given)), key=lambda row: row[:2])
    assert found == rows_from(START_MS, written)


@pytest.mark.spark
def test_a_stream_in_limited_micro_batches(
    spark: SparkSession, tiered: TieredKafka, written: Written, run: Run
) -> None:
    """`maxBytesPerTrigger` takes samples of the log, from remote storage, too."""
    frame = spark.readStream.format("pykafka").options(
        **options(tiered, maxBytesPerTrigger="1m", **{"kafka.isolation.level": "read_committed"})
    )
    numbers = "CAST(hex(CAST(concat(partition, '-', offset) AS BINARY)) AS BINARY)"
    sink = Batches()
    run(frame.load().selectExpr("partition", "offset", f"{numbers} AS value"), sink)
    expected = [f"{row[0]}-{row[1]}".encode().hex().upper() for row in written.rows]
    assert sink.values == sorted(expected)
    assert len(sink.seen) > 2


def test_offsets_as_kafkas_own_tool_lists_them(
    tiered: TieredKafka, written: Written, local_starts: list[int]
) -> None:
    specs = {
        "earliest": OffsetSpec.earliest(),
        "latest": OffsetSpec.latest(),
        "max-timestamp": OffsetSpec.max_timestamp(),
        "earliest-local": OffsetSpec.earliest_local(),
        "latest-tiered": OffsetSpec.latest_tiered(),
        "-6": OffsetSpec.earliest_pending_upload(),
    }
    found = {}
    with KafkaAdmin(bootstrap_servers=tiered.servers) as admin:
        for name, spec in specs.items():
            listed = admin.list_offsets(dict.fromkeys(WHERE, spec))
            found[name] = [at and at.offset for at in listed.values()]
            shown = tiered.kafka.tool("get-offsets", "--topic", TOPIC, "--time", name)
            offsets = [int(line.rpartition(":")[2]) for line in shown.split()]
            assert found[name] == offsets, name
    assert found["earliest"] == [0, 0]
    assert found["earliest-local"] == local_starts
    assert found["latest-tiered"] == [start - 1 for start in local_starts]
    assert found["-6"] == local_starts


def test_the_command_shows_what_is_in_which_tier(
    tiered: TieredKafka,
    written: Written,
    local_starts: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["topics", TOPIC, "--tiered", "-b", tiered.servers, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["earliest"] for row in rows] == [0, 0]
    assert [row["earliest_local"] for row in rows] == local_starts
    assert [row["latest_tiered"] for row in rows] == [start - 1 for start in local_starts]
    assert [row["earliest_pending_upload"] for row in rows] == local_starts
