"""Limits of a micro-batch, and the lag that they leave, with each Spark."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import spark_kafka_source
from tests.matrix.test_smoke import FROM_SPARK_4_2, committed
from tests.spark_session import Run, Start
from tools.traffic import Batches, Events, failure, stream, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    # Spark 4.0 leaves the sockets of rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed .socket:ResourceWarning"),
]

Follow = Callable[[DataFrame, Batches], None]

RUNS_TO_AN_END = """
import json, sys
import spark_kafka_source
from pyspark.sql import SparkSession

options, checkpoint, starts, trigger = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "OFF").getOrCreate()
spark_kafka_source.register(spark)
for _ in range(starts):
    frame = spark.readStream.format("pykafka").options(**options).load()
    writing = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
    if trigger == "availableNow":
        assert writing.trigger(availableNow=True).start().awaitTermination(240)
    else:
        query = writing.trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        query.stop()
"""


@pytest.fixture
def follow(start: Start) -> Follow:
    """Return a function that runs a stream until nothing is new, and then stops it."""

    def follow(frame: DataFrame, sink: Batches) -> None:
        query = start(frame.writeStream.foreachBatch(sink))
        query.processAllAvailable()
        query.stop()

    return follow


@contextmanager
def lags_of(session: SparkSession, events: Events) -> Iterator[list[int]]:
    """Collect the sum of the lag of this topic after each micro-batch.

    Spark may tell this listener of a micro-batch of an earlier test: that one has another topic.
    """
    seen: list[int] = []

    def keep(_: object, lag: Mapping[Any, int]) -> None:
        if any(where.topic == events.name for where in lag):
            seen.append(sum(lag.values()))

    listener = spark_kafka_source.LagListener(keep)
    session.streams.addListener(listener)
    yield seen
    session.streams.removeListener(listener)


def sizes_of(sink: Batches) -> list[int]:
    return [len(rows) for _, rows in sink.seen if rows]


def test_a_limit_is_kept_across_restarts(
    session: SparkSession, events: Events, follow: Follow
) -> None:
    events.fill(10)
    frame = stream(session, events.options(maxOffsetsPerTrigger=4))
    sink = Batches()
    follow(frame, sink)
    events.write([f"0:{offset}" for offset in range(10, 16)])
    follow(frame, sink)
    follow(frame, sink)
    assert sizes_of(sink) == [4, 4, 2, 4, 2]
    assert sink.values == sorted(f"0:{offset}" for offset in range(16))


class Failing(Batches):
    """A sink that fails in its micro-batch number `fails_at`, after it has seen the rows."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.fails_at = fails_at

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        super().__call__(frame, batch_id)
        if batch_id == self.fails_at:
            self.fails_at = -1
            raise RuntimeError("the sink fails")


@pytest.mark.parametrize("fails_at", [0, 1])
def test_an_unfinished_micro_batch_is_run_again_with_the_same_rows(
    session: SparkSession, events: Events, start: Start, follow: Follow, fails_at: int
) -> None:
    events.fill(10)
    frame = stream(session, events.options(maxOffsetsPerTrigger=4))
    sink = Failing(fails_at)
    assert "the sink fails" in failure(start(frame.writeStream.foreachBatch(sink)))
    events.write(["later"])
    follow(frame, sink)  # `Batches` holds the rows of both attempts together.
    assert sizes_of(sink) == [4] * (fails_at + 1) + [4] * (2 - fails_at) + [3]
    assert sink.values == [*(f"0:{offset}" for offset in range(10)), "later"]


def test_a_limit_by_bytes_is_kept(session: SparkSession, events: Events, follow: Follow) -> None:
    events.create()
    for number in range(8):
        events.write([f"{number}" * 1_000])  # Each is a record batch by itself.
    sink = Batches()
    follow(stream(session, events.options(maxBytesPerTrigger="4k")), sink)
    assert sum(sizes_of(sink)) == 8
    assert len(sizes_of(sink)) >= 2
    assert max(sizes_of(sink)) <= 5


def test_a_least_number_is_waited_for(session: SparkSession, events: Events, start: Start) -> None:
    events.fill(1)
    sink = Batches()
    frame = stream(session, events.options(minOffsetsPerTrigger=3, maxTriggerDelay="1h"))
    query = start(frame.writeStream.foreachBatch(sink))
    query.processAllAvailable()
    events.write(["a", "b"])
    query.processAllAvailable()
    assert sizes_of(sink) == [1]
    events.write(["c"])
    wait_until(lambda: len(sink.values) == 4, query)
    assert sizes_of(sink) == [1, 3]


def test_what_a_limit_leaves_is_the_lag(
    session: SparkSession, events: Events, follow: Follow
) -> None:
    events.fill(10)
    found = events.options(maxOffsetsPerTrigger=4) | {"kafka.group.id": events.name}
    with lags_of(session, events) as seen:
        follow(stream(session, found), Batches())
        wait_until(lambda: len(seen) == 3)
    assert seen == [6, 2, 0]
    assert committed(events) == [10]


def test_a_run_over_what_is_available_reads_all_or_tells_what_it_leaves(
    session: SparkSession, events: Events, run: Run
) -> None:
    """Before Spark 4.2 such a run is one micro-batch, and the next run goes on."""
    events.fill(10)
    frame = stream(session, events.options(maxOffsetsPerTrigger=4))
    sink = Batches()
    lags = [[6, 2, 0]] if FROM_SPARK_4_2 else [[6], [2], [0]]
    for expected in lags:
        with lags_of(session, events) as seen:
            run(frame, sink)
            wait_until(lambda: len(seen) == len(expected))  # noqa: B023 - called now
        assert seen == expected
    assert sizes_of(sink) == [4, 4, 2]
    assert sink.values == sorted(f"0:{offset}" for offset in range(10))


@pytest.mark.parametrize(
    ("options", "trigger", "warnings"),
    [
        ({}, "availableNow", 0 if FROM_SPARK_4_2 else 1),
        ({"limitsWithAvailableNow": "accept"}, "availableNow", 0),
        ({}, "processingTime", 0),
    ],
)
def test_only_after_a_run_that_ended_early_a_start_warns_with_time_level_and_topic(
    events: Events, tmp_path: Path, options: dict[str, str], trigger: str, warnings: int
) -> None:
    events.fill(3)
    found = events.options(maxOffsetsPerTrigger="1", **options)
    arguments = [found, str(tmp_path / "kept"), 2, trigger]
    done = subprocess.run(
        [sys.executable, "-c", RUNS_TO_AN_END, json.dumps(arguments)],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    form = (
        r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARNING spark_kafka_source\S*: "
        rf"\[subscribe='{events.name}'\] The last run ended with its first micro-batch"
    )
    assert len(re.findall(form, done.stderr, re.MULTILINE)) == warnings, done.stderr
    assert done.stderr.count("ended with its first micro-batch") == warnings
