"""Streams that write to a real broker. Each row is there, also after restarts."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from spark_kafka_source import KafkaDataSource
from spark_kafka_source.spark.sink.guarantee import AtLeastOnce, Messages
from spark_kafka_source.spark.sink.writer import KafkaWriter
from tests.spark.sink.written import rows, texts, to, writer
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events, failure, sizes, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.usefixtures("spark")]


def copying(spark: SparkSession, events: Events) -> DataFrame:
    """Return a stream of the keys and values of a topic."""
    return stream(spark, events.options(maxOffsetsPerTrigger=4)).select("key", "value")


def written_by(frame: DataFrame, options: dict[str, Any]) -> DataStreamWriter:
    return frame.writeStream.format("pykafka").options(**options)


def test_a_stream_writes_what_it_reads(
    spark: SparkSession, events: Events, target: Events, start: Start
) -> None:
    events.fill(5, 4)
    query = start(written_by(copying(spark, events), to(target)))
    query.processAllAvailable()
    expected = ["0:0", "0:1", "0:2", "0:3", "0:4", "1:0", "1:1", "1:2", "1:3"]
    assert texts(target) == expected
    events.write(["later"], 1)
    query.processAllAvailable()
    assert texts(target) == [*expected, "later"]
    assert sum(sizes(query)) == 10


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_column_in_another_case_is_refused_before_a_row_is_written(
    spark: SparkSession, events: Events, target: Events, start: Start, guarantee: str
) -> None:
    events.fill(2)
    frame = copying(spark, events).withColumnRenamed("key", "KEY")
    options = to(target, deliveryGuarantee=guarantee)
    with pytest.raises(PySparkException, match=r"UnknownColumnError: Column 'KEY' .* case: 'key'"):
        start(written_by(frame, options)).processAllAvailable()
    assert texts(target) == []


def test_it_goes_on_from_its_checkpoint(
    spark: SparkSession, events: Events, target: Events, start: Start
) -> None:
    events.fill(3, 3)

    def run() -> None:
        writing = written_by(copying(spark, events), to(target)).trigger(availableNow=True)
        assert start(writing).awaitTermination(TIMEOUT_SECONDS)

    run()
    events.write(["later"])
    run()
    run()
    assert texts(target) == ["0:0", "0:1", "0:2", "1:0", "1:1", "1:2", "later"]


def test_a_micro_batch_that_is_not_known_to_be_finished_is_written_once_more(
    spark: SparkSession, events: Events, target: Events, start: Start, tmp_path: Path
) -> None:
    """The promise is at least once. The driver may die before it writes the commit log."""
    events.fill(3)
    frame = stream(spark, events.options()).select("value")
    writing = written_by(frame, to(target)).trigger(availableNow=True)
    assert start(writing).awaitTermination(TIMEOUT_SECONDS)
    commits = tmp_path / "checkpoint" / "commits"
    for each in commits.iterdir():
        each.unlink()
    assert start(writing).awaitTermination(TIMEOUT_SECONDS)
    assert texts(target) == ["0:0", "0:0", "0:1", "0:1", "0:2", "0:2"]


def test_it_can_be_stopped_while_it_waits_for_a_broker(
    spark: SparkSession, events: Events, start: Start
) -> None:
    events.fill(3)
    missing = to(events.another("missing"), **{"kafka.max.block.ms": 600_000})
    query = start(written_by(copying(spark, events), missing))
    wait_until(lambda: query.status["isTriggerActive"], query)
    query.stop()
    assert not query.isActive


# -- Spark's description of a query --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Noting(AtLeastOnce):
    """Guarantee that writes the messages of each commit to a file."""

    path: str

    def commit(self, messages: Messages, batch_id: int | None) -> None:
        with Path(self.path).open("a") as file:
            for message in messages:
                assert message is not None
                noted = {**asdict(message.attempt), "rows": message.row_count, "N": batch_id}
                file.write(json.dumps(noted) + "\n")


class NotingDataSource(KafkaDataSource):
    """Data source `noting`. An option names the file."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = dict(options)
        self._path = given.pop("notes")
        super().__init__(given)

    @classmethod
    def name(cls) -> str:
        return "noting"

    def _writer(self, schema: StructType) -> KafkaWriter:
        writer = super()._writer(schema)
        writer._guarantee = Noting(writer._options.producer, self._path)
        return writer


@pytest.fixture
def notes(spark: SparkSession, tmp_path: Path) -> Path:
    """File that `format("noting")` writes to."""
    spark.dataSource.register(NotingDataSource)
    return tmp_path / "notes"


def noted(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.filterwarnings("ignore:The data source noting was registered:UserWarning")
def test_each_task_says_which_query_run_and_batch_it_was_of(
    spark: SparkSession, events: Events, target: Events, start: Start, notes: Path
) -> None:
    events.fill(2, 1)
    frame = stream(spark, events.options()).select("value")
    given = to(target, notes=notes)

    def run() -> StreamingQuery:
        writing = frame.writeStream.format("noting").options(**given).trigger(availableNow=True)
        query = start(writing)
        assert query.awaitTermination(TIMEOUT_SECONDS)
        return query

    first = run()
    events.write(["later"])
    second = run()
    assert first.id == second.id
    assert first.runId != second.runId
    found = noted(notes)
    assert all(each["query_id"] == str(first.id) for each in found)
    assert all(each["batch_id"] == each["N"] for each in found)
    counted = [(each["run_id"], each["N"], each["partition"], each["rows"]) for each in found]
    assert sorted(counted) == sorted(
        [(str(first.runId), 0, 0, 2), (str(first.runId), 0, 1, 1), (str(second.runId), 1, 0, 1)]
    )


@pytest.mark.filterwarnings("ignore:The data source noting was registered:UserWarning")
def test_within_foreach_batch_the_query_is_known_and_in_a_plain_batch_there_is_none(
    spark: SparkSession, events: Events, target: Events, start: Start, notes: Path
) -> None:
    events.fill(2)
    given = to(target, notes=notes)

    def write(frame: DataFrame, _: int) -> None:
        writer(frame.select("value"), given, "noting").save()

    writing = stream(spark, events.options()).writeStream.foreachBatch(write)
    query = start(writing.trigger(availableNow=True))
    assert query.awaitTermination(TIMEOUT_SECONDS)
    writer(rows(spark, "a").coalesce(1), given, "noting").save()
    of_stream, of_batch = noted(notes)
    assert (of_stream["query_id"], of_stream["run_id"]) == (str(query.id), str(query.runId))
    assert (of_stream["batch_id"], of_stream["N"]) == (0, None)
    assert (of_batch["query_id"], of_batch["run_id"], of_batch["batch_id"]) == (None, None, None)


# -- modes ---------------------------------------------------------------------------------------


def counts(spark: SparkSession, events: Events) -> DataFrame:
    """Return a stream with the count of each value so far."""
    found = stream(spark, events.options()).groupBy("value").count()
    return found.selectExpr("value AS key", "CAST(count AS STRING) AS value")


def test_what_an_aggregation_updates_is_written_by_foreach_batch(
    spark: SparkSession, events: Events, target: Events, start: Start
) -> None:
    events.create()
    events.write(["a", "b", "a"])

    def write(frame: DataFrame, _: int) -> None:
        writer(frame, to(target)).save()

    query = start(counts(spark, events).writeStream.outputMode("update").foreachBatch(write))
    query.processAllAvailable()
    assert texts(target) == ["1", "2"]
    events.write(["a"])
    query.processAllAvailable()
    assert texts(target) == ["1", "2", "3"]


def test_a_stream_in_update_mode_is_refused_by_spark(
    spark: SparkSession, events: Events, target: Events, start: Start
) -> None:
    events.fill(1)
    writing = written_by(counts(spark, events), to(target)).outputMode("update")
    assert "does not support Update mode" in failure(start(writing))


def test_a_stream_in_complete_mode_is_refused_with_the_way_out(
    spark: SparkSession, events: Events, target: Events, start: Start
) -> None:
    events.fill(1)
    query = start(written_by(counts(spark, events), to(target)).outputMode("complete"))
    text = failure(query)
    assert "Option 'outputMode': is 'complete'. Kafka's topics only grow: give 'append'" in text
    assert "foreachBatch" in text
    assert texts(target) == []


@pytest.mark.parametrize(
    ("column", "option", "said"),
    [
        ("CAST(value AS INT) AS value", {}, "Column 'value' is of the type int"),
        ("value AS key", {}, "There is no column 'value'"),
        ("value", {"topic": None}, "Option 'topic': is missing"),
        ("value", {"kafka.key.serializer": "x"}, "Option 'kafka.key.serializer': is not"),
    ],
)
def test_what_cannot_be_written_ends_a_stream_before_its_tasks(
    events: Events, start: Start, column: str, option: dict[str, Any], said: str
) -> None:
    events.fill(1)
    spark = SparkSession.active()
    frame = stream(spark, events.options()).selectExpr("CAST(value AS STRING) AS value")
    writing = written_by(frame.selectExpr(column), to(events.another("none"), **option))
    assert said in failure(start(writing))


def test_a_stream_is_not_told_off_for_what_spark_reads(
    spark: SparkSession, events: Events, target: Events, tmp_path: Path
) -> None:
    events.fill(1)
    given = to(target, checkpointLocation=tmp_path / "own", queryName="named")
    frame = stream(spark, events.options()).select("value")
    query = written_by(frame, given).trigger(availableNow=True).start()
    assert query.awaitTermination(TIMEOUT_SECONDS)
    assert texts(target) == ["0:0"]
