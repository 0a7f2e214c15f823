"""The writer as Spark calls it: pickled into tasks, and a new one for the commit."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from spark_kafka_source import KafkaDataSource
from spark_kafka_source.errors import ConfigurationError, KafkaTimeoutError
from spark_kafka_source.records import ColumnTypeError
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.spark.sink import guarantee
from spark_kafka_source.spark.sink.guarantee import Attempt, Written
from spark_kafka_source.spark.sink.writer import KafkaWriter
from tests.spark.settings import BOOTSTRAP_SERVERS, shipped
from tests.spark.sink.fake_producer import FakeProducer, Makes
from tests.spark.sink.settings import values

GIVEN = BOOTSTRAP_SERVERS | {"topic": "t"}
SCHEMA = StructType([StructField("value", StringType())])


@pytest.fixture
def makes(monkeypatch: pytest.MonkeyPatch) -> Makes:
    """Factory of the producers of a fresh worker."""
    makes = Makes()
    monkeypatch.setattr(guarantee, "kept_producers", Pool(makes, FakeProducer.close))
    return makes


def writer() -> KafkaWriter:
    return shipped(KafkaDataSource(GIVEN).writer(SCHEMA, overwrite=False))


def test_it_is_what_each_spark_asks_for() -> None:
    assert isinstance(writer(), DataSourceArrowWriter)
    assert isinstance(writer(), DataSourceStreamWriter)


def test_a_task_writes_its_rows_and_says_how_many(makes: Makes) -> None:
    found = writer().write(iter([values("a", "b"), values("c")]))
    (producer,) = makes.made
    assert [row["value"] for row in producer.rows] == ["a", "b", "c"]
    assert producer.calls == ["flush"]
    assert isinstance(shipped(found), WriterCommitMessage)
    assert shipped(found) == found == Written(Attempt(0, 0), 3, found.byte_count)
    assert found.byte_count >= 3


@pytest.mark.parametrize("batches", [[], [values()]], ids=["no batch", "an empty one"])
def test_a_task_without_rows_makes_no_producer(makes: Makes, batches: list[pa.RecordBatch]) -> None:
    assert writer().write(iter(batches)) == Written(Attempt(0, 0), 0, 0)
    assert not makes.made


@pytest.mark.parametrize("batches", [[values("a")], []], ids=["a row", "no row"])
def test_a_task_settles_before_it_asks_for_its_first_row(
    makes: Makes, monkeypatch: pytest.MonkeyPatch, batches: list[pa.RecordBatch]
) -> None:
    """A row may take long to compute, and what is decided may time out meanwhile."""
    steps: list[str] = []
    monkeypatch.setattr(guarantee.AtLeastOnce, "settle", lambda *_: steps.append("settled"))

    def rows() -> Iterator[pa.RecordBatch]:
        steps.append("asked for rows")
        yield from batches

    writer().write(rows())
    assert steps == ["settled", "asked for rows"]


def test_the_next_task_has_the_same_producer(makes: Makes) -> None:
    for _ in range(3):
        writer().write(iter([values("a")]))
    assert len(makes.made) == 1


def test_a_task_that_failed_leaves_nothing_to_the_next(makes: Makes) -> None:
    def ending() -> Iterator[pa.RecordBatch]:
        yield values("a" * (9 << 20))
        yield values("b" * (9 << 20))
        makes.made[0].answer(0, KafkaTimeoutError("no leader"))
        yield values("c")

    with pytest.raises(KafkaTimeoutError):
        writer().write(ending())
    writer().write(iter([values("d")]))
    first, second = makes.made
    assert first.calls == ["close within 0 s"]
    assert [row["value"] for row in second.rows] == ["d"]


def test_a_task_that_is_killed_leaves_nothing_either(makes: Makes) -> None:
    def killed() -> Iterator[pa.RecordBatch]:
        yield values("a" * (9 << 20))
        yield values("b")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writer().write(killed())
    assert makes.made[0].calls == ["close within 0 s"]


def test_the_driver_has_nothing_to_do(makes: Makes) -> None:
    batch, stream = writer(), KafkaDataSource(GIVEN).streamWriter(SCHEMA, overwrite=False)
    message = Written(Attempt(0, 0), 1, 1)
    batch.commit([message])
    batch.abort([message, None])
    stream.commit([message], 7)
    stream.abort([message, None], 7)
    assert not makes.made


# -- the plan ------------------------------------------------------------------------------------


def test_other_modes_are_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigurationError, match=r"'mode': is 'overwrite'\. .* give 'append'"):
        KafkaDataSource(GIVEN).writer(SCHEMA, overwrite=True)
    with pytest.raises(ConfigurationError, match=r"'outputMode': is 'complete'\..*'foreachBatch'"):
        KafkaDataSource(GIVEN).streamWriter(SCHEMA, overwrite=True)


def test_the_schema_is_looked_at_before_any_task() -> None:
    wrong = StructType([StructField("value", IntegerType())])
    with pytest.raises(ColumnTypeError):
        KafkaDataSource(GIVEN).writer(wrong, overwrite=False)
    with pytest.raises(ColumnTypeError):
        KafkaDataSource(GIVEN).streamWriter(wrong, overwrite=False)


def test_options_of_a_stream_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    given = {**GIVEN, "kafka.fetch.min.bytes": "1", "topic": "warned-of-once"}
    for _ in range(5):
        shipped(KafkaDataSource(given)).streamWriter(SCHEMA, overwrite=False)
    assert len(caplog.records) == 1


def test_a_reader_needs_no_topic_and_a_writer_no_subscription() -> None:
    source = KafkaDataSource(BOOTSTRAP_SERVERS)
    with pytest.raises(ConfigurationError, match="'subscribe'"):
        source.schema()
    with pytest.raises(ConfigurationError, match="'topic'"):
        source.writer(SCHEMA, overwrite=False)
