"""Why this source takes no filters: Spark's defect with readers that take them.

A reader of this test takes filters. It knows nothing of this project. A test here that fails on a
new Spark says that Spark has repaired it: then look at the decision again
(docs/contributors/spark-versions.md).
"""

from collections.abc import Iterator

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from spark_kafka_source.spark.source.batch import KafkaBatchReader

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        pyspark.__version__.startswith("4.0."), reason="Spark hands over filters since 4.1"
    ),
    # Spark 4.1 leaves the sockets of rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed .socket:ResourceWarning"),
]

ENABLED = "spark.sql.python.filterPushdown.enabled"


def filtering_source() -> type[DataSource]:
    """Return a source of the numbers from 0 to 9 that takes filters of the form `number >= 8`.

    A function defines the class, so Spark pickles it whole. No Python worker imports this module.
    """

    class Reader(DataSourceReader):
        least = 0

        def pushFilters(self, filters):  # type: ignore[no-untyped-def]  # Spark 4.0 has no Filter
            for each in filters:
                if type(each).__name__ == "GreaterThanOrEqual":
                    self.least = max(self.least, each.value)
                else:
                    yield each

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            return ((number,) for number in range(self.least, 10))

    class Filtering(DataSource):
        @classmethod
        def name(cls) -> str:
            return "filtering"

        def schema(self) -> str:
            return "number int"

        def reader(self, schema: object) -> DataSourceReader:
            return Reader()

    return Filtering


@pytest.fixture
def frame(session: SparkSession) -> DataFrame:
    session.dataSource.register(filtering_source())
    return session.read.format("filtering").load()


@pytest.fixture
def enabled(session: SparkSession) -> Iterator[None]:
    """Let Spark hand over filters."""
    session.conf.set(ENABLED, "true")
    yield
    session.conf.unset(ENABLED)


def numbers(frame: DataFrame) -> list[int]:
    return sorted(row.number for row in frame.collect())


def test_a_reader_that_takes_filters_works_nowhere_by_default(frame: DataFrame) -> None:
    with pytest.raises(PySparkException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        numbers(frame.where("number >= 8"))


@pytest.mark.usefixtures("enabled")
def test_a_second_use_of_a_dataframe_keeps_the_filter_of_the_first(frame: DataFrame) -> None:
    assert numbers(frame.where("number >= 8")) == [8, 9]
    assert numbers(frame) == [8, 9], "Spark is repaired: all ten numbers are right"


@pytest.mark.usefixtures("enabled")
def test_two_filters_in_one_query_are_taken_for_one(frame: DataFrame) -> None:
    both = frame.where("number >= 8").union(frame.where("number >= 6"))
    assert numbers(both) == [6, 6, 7, 7, 8, 8, 9, 9], "Spark is repaired: 6, 7, 8, 8, 9, 9 is right"


def test_the_reader_accepts_no_filters() -> None:
    assert "pushFilters" not in vars(KafkaBatchReader)
