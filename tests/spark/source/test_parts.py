"""Parts of topics by option: some partitions, some offsets, several partitions in one task."""

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.spark_session import Run
from tools.traffic import Batches, Events, Writer, batch, sizes, stream, values

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_only_some_partitions(spark: SparkSession, events: Events, run: Run) -> None:
    events.fill(2, 2, 2, 2)
    found = events.options(partitions="0,2-3")
    expected = ["0:0", "0:1", "2:0", "2:1", "3:0", "3:1"]
    assert values(batch(spark, found)) == expected
    sink = Batches()
    run(stream(spark, found), sink)
    assert sink.values == expected
    events.write(["more"], 1)
    events.write(["3:2"], 3)
    run(stream(spark, found), sink)
    assert sink.values == [*expected, "3:2"]


def test_only_some_offsets_of_each_partition(spark: SparkSession, events: Events, run: Run) -> None:
    events.fill(2, 7, 5)
    found = events.options(minOffset=1, maxOffset=4)
    expected = ["0:1", "1:1", "1:2", "1:3", "1:4", "2:1", "2:2", "2:3", "2:4"]
    assert values(batch(spark, found)) == expected
    where = batch(spark, events.options()).where("offset BETWEEN 1 AND 4")
    assert values(where) == expected
    sink = Batches()
    run(stream(spark, found), sink)
    events.write(["0:2"], 0)
    events.write(["too late"], 1)
    run(stream(spark, found), sink)
    assert sink.values == sorted([*expected, "0:2"])


def test_small_partitions_in_one_task(spark: SparkSession, events: Events, run: Run) -> None:
    events.fill(*[3] * 16)
    alone, together = events.options(), events.options(minRecordsPerPartition=20)
    assert batch(spark, alone).rdd.getNumPartitions() == 16
    assert batch(spark, together).rdd.getNumPartitions() == 3
    assert values(batch(spark, together)) == values(batch(spark, alone))
    sink = Batches()
    run(stream(spark, together), sink)
    for partition in range(16):
        events.write(["more"], partition)
    run(stream(spark, together), sink)
    assert sink.values == sorted(values(batch(spark, alone)))


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_micro_batches_of_about_so_many_bytes(
    spark: SparkSession, kafka: LocalKafka, events: Events, run: Run, compression: str
) -> None:
    """The limit counts compressed bytes of the log. Each micro-batch reads from every partition."""
    events.create(2)
    with Writer(kafka.bootstrap_servers, compression_type=compression, linger_ms=5) as writer:
        for number in range(2_000):
            writer.queue(events.name, b"%06d" % number * 150, partition=number % 2)
    sink = Batches()
    query = run(stream(spark, events.options(maxBytesPerTrigger="200k")), sink)
    assert len(sink.values) == 2_000
    rows = [size for size in sizes(query) if size]
    if compression == "none":  # 900 bytes a record, 227 records in 200 kB
        assert all(150 < size < 300 for size in rows[:-1])
    else:
        assert len(rows) < 5


def test_large_records_after_small_ones_do_not_come_at_once(
    spark: SparkSession, events: Events, run: Run
) -> None:
    events.create()
    events.write(["small"] * 500)
    events.write(["x" * 200_000] * 20)
    query = run(stream(spark, events.options(maxBytesPerTrigger="1m")), Batches())
    rows = [size for size in sizes(query) if size]
    assert sum(rows) == 520
    assert max(rows[-4:]) <= 12


def test_both_limits_hold(spark: SparkSession, events: Events, run: Run) -> None:
    events.create()
    events.write(["x" * 1_000] * 100)
    found = events.options(maxBytesPerTrigger="1g", maxOffsetsPerTrigger=40)
    assert [size for size in sizes(run(stream(spark, found), Batches())) if size] == [40, 40, 20]
    events.write(["x" * 1_000] * 100)
    found = events.options(maxBytesPerTrigger="20k", maxOffsetsPerTrigger=90)
    rows = [size for size in sizes(run(stream(spark, found), Batches())) if size]
    assert sum(rows) == 100
    assert max(rows) < 30


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_record_larger_than_is_allowed_is_named(
    spark: SparkSession, kafka: LocalKafka, events: Events, compression: str
) -> None:
    """The record is small in the broker's log, since it is compressed."""
    events.create()
    settings = {"compression_type": compression, "message_max_bytes": 9_000_000}
    with Writer(kafka.bootstrap_servers, **settings) as writer:
        writer.queue(events.name, b"small")
        writer.flush()
        writer.queue(events.name, b"x" * 4_000_000)
    assert len(values(batch(spark, events.options()))) == 2
    with pytest.raises(Exception, match=rf"{events.name}-0 at offset 1: .*{3 << 20}"):
        values(batch(spark, events.options(maxRecordBytes="3m")))
