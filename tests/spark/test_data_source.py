"""The data source as Spark sees it: its name, its columns, and its pickling."""

import inspect
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

import pyspark_pykafka
import spark_kafka_source
from spark_kafka_source import KafkaDataSource, records
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.conditions import DataLossError, OffsetMismatchError
from spark_kafka_source.spark.sink.writer import KafkaWriter
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.schema import kafka_schema
from tests.spark.settings import A0, A1, A2, BOOTSTRAP_SERVERS, parsed, shipped
from tests.spark.source.engine import FakePlanner, Log

GIVEN = BOOTSTRAP_SERVERS | {"subscribe": "a"}

PEER = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("timestamp", TimestampType())
    .add("timestampType", IntegerType())
)
HEADER = StructType().add("key", StringType()).add("value", BinaryType())
PEER_WITH_HEADERS = StructType([*PEER.fields]).add("headers", ArrayType(HEADER))


def test_its_name_and_how_spark_finds_it() -> None:
    assert KafkaDataSource.name() == "pykafka"
    assert pyspark_pykafka.DefaultSource is KafkaDataSource
    assert spark_kafka_source.KafkaDataSource is KafkaDataSource


def test_the_columns_are_the_peers() -> None:
    assert KafkaDataSource(GIVEN).schema() == PEER
    assert KafkaDataSource(GIVEN | {"includeHeaders": "true"}).schema() == PEER_WITH_HEADERS


@pytest.mark.parametrize("include_headers", [False, True])
def test_batches_have_the_types_that_spark_wants(include_headers: bool) -> None:
    columns = records.COLUMNS_WITH_HEADERS if include_headers else records.COLUMNS
    # Spark before 4.1 does not have this parameter. Its timestamps are always in UTC.
    is_known = "timezone" in inspect.signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if is_known else {}
    wanted = to_arrow_schema(kafka_schema(columns), **zone)
    assert records.schema(columns).equals(wanted)


@pytest.mark.parametrize("read", [KafkaDataSource.reader, KafkaDataSource.streamReader])
def test_another_schema_is_refused(
    read: Callable[[KafkaDataSource, StructType], object],
) -> None:
    source = KafkaDataSource(GIVEN)
    with pytest.raises(ConfigurationError, match=r"found struct<key:binary>.* leave it out"):
        read(source, StructType().add("key", BinaryType()))


def test_a_schema_may_be_that_of_arrow() -> None:
    """Sail hands it over. Its streams, too, ask for the reader of a batch."""
    source = KafkaDataSource(GIVEN)
    assert isinstance(source.reader(records.schema(records.COLUMNS)), KafkaBatchReader)
    with pytest.raises(ConfigurationError, match=r"found struct<key:binary>.* leave it out"):
        source.reader(pa.schema([("key", pa.binary())]))
    sink = KafkaDataSource(BOOTSTRAP_SERVERS | {"topic": "t"})
    assert isinstance(sink.writer(pa.schema([("value", pa.string())]), False), KafkaWriter)


def test_it_crosses_processes_without_the_options_text() -> None:
    source = KafkaDataSource(GIVEN | {"zzz": "canary", "kafka.zzz": "canary"})
    assert source.schema() == PEER  # Spark asks for the schema before it pickles the source.
    assert b"canary" not in cloudpickle.dumps(source)  # type: ignore[no-untyped-call]
    assert shipped(source).schema() == PEER


def test_a_batch_reader_crosses_processes() -> None:
    reader = shipped(KafkaDataSource(GIVEN).reader(PEER))
    assert list(reader.read(InputPartition(None))) == []


# -- plan of a batch -----------------------------------------------------------------------------


def planned(options: SourceOptions) -> list[str]:
    log = Log({A0: 5, A1: 3, A2: 0})
    log.first[A0] = 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "spark_kafka_source.spark.source.batch.OffsetPlanner",
            lambda given: FakePlanner(given, log),
        )
        return [str(each.value) for each in KafkaBatchReader(options).partitions()]


@pytest.mark.parametrize(
    ("starting_offsets", "ending_offsets", "expected"),
    [
        (None, None, ["a-0 [2, 5)", "a-1 [0, 3)"]),
        ("earliest", "latest", ["a-0 [2, 5)", "a-1 [0, 3)"]),
        ('{"a":{"0":4,"1":-2,"2":0}}', None, ["a-0 [4, 5)", "a-1 [0, 3)"]),
        (None, '{"a":{"0":3,"1":-1,"2":0}}', ["a-0 [2, 3)", "a-1 [0, 3)"]),
        ('{"a":{"0":3,"1":1,"2":0}}', '{"a":{"0":3,"1":2,"2":-1}}', ["a-1 [1, 2)"]),
    ],
)
def test_the_range_of_a_batch(
    starting_offsets: str | None, ending_offsets: str | None, expected: list[str]
) -> None:
    given = {"startingOffsets": starting_offsets, "endingOffsets": ending_offsets}
    options = parsed(**{name: text for name, text in given.items() if text})
    assert planned(options) == expected


def test_a_batch_may_have_nothing_to_read() -> None:
    assert planned(parsed(endingOffsets='{"a":{"0":2,"1":0,"2":0}}')) == []


@pytest.mark.parametrize(
    ("option", "offsets", "text"),
    [
        ("startingOffsets", '{"a":{"0":1,"1":0,"2":0}}', "offset 1 of a-0 .* offsets 2 to 5"),
        ("endingOffsets", '{"a":{"0":1,"1":3,"2":0}}', "offset 1 of a-0 .* offsets 2 to 5"),
        ("endingOffsets", '{"a":{"0":2,"1":4,"2":0}}', "offset 4 of a-1 .* offsets 0 to 3"),
    ],
)
def test_offsets_outside_the_log_are_refused(option: str, offsets: str, text: str) -> None:
    with pytest.raises(DataLossError, match=f"START_OFFSET_RESET.*'{option}': {text}"):
        planned(parsed(**{option: offsets}))


@pytest.mark.parametrize(
    ("option", "offsets", "expected"),
    [
        ("startingOffsets", '{"a":{"0":1,"1":0,"2":0}}', ["a-0 [2, 5)", "a-1 [0, 3)"]),
        ("endingOffsets", '{"a":{"0":1,"1":4,"2":0}}', ["a-1 [0, 3)"]),
    ],
)
def test_without_fail_on_data_loss_what_is_left_of_a_range_is_read(
    option: str, offsets: str, expected: list[str]
) -> None:
    assert planned(parsed(failOnDataLoss="false", **{option: offsets})) == expected


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_batch_cannot_start_after_the_latest(fails: str) -> None:
    condition = "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET.*a-1: the start offset 4 .* offset 3"
    with pytest.raises(OffsetMismatchError, match=condition):
        planned(parsed(startingOffsets='{"a":{"0":2,"1":4,"2":0}}', failOnDataLoss=fails))


def test_tasks_are_split_by_option() -> None:
    expected = ["a-0 [2, 3)", "a-0 [3, 5)", "a-1 [0, 1)", "a-1 [1, 3)"]
    assert planned(parsed(maxRecordsPerPartition="2")) == expected


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_offsets_name_all_partitions(option: str) -> None:
    with pytest.raises(OffsetMismatchError, match=f"'{option}'.* missing: a-1, a-2; unknown: none"):
        planned(parsed(**{option: '{"a":{"0":2}}'}))
