"""Code in `foreachBatch` writes to two topics under the query's one prefix, and dies in between.

confluent-kafka reads what is committed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import concat, lit

from tests.spark.sink.written import saved, texts, to, writer
from tests.spark_session import Start
from tools.traffic import Events, stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROWS = 4
FIRST, SECOND = ([f"{name} 0:{row}" for row in range(ROWS)] for name in ("first", "second"))

Run = Callable[..., str]


@pytest.fixture
def targets(events: Events) -> list[Events]:
    """The topics of the two writes."""
    targets = [events.another(name) for name in ("first", "second")]
    for each in targets:
        each.create(2)
    return targets


@pytest.fixture
def run(spark: SparkSession, events: Events, targets: list[Events], start: Start) -> Run:
    """Function that runs a query on the test's checkpoint to its end, or to its error.

    It writes each micro-batch to these targets in this order. It returns the error's text, or none.
    """

    def run(*order: int, dies: bool = False) -> str:
        def save(frame: DataFrame, _: int) -> None:
            for place in order:
                name = targets[place].name.rpartition("-")[2]
                rows = frame.select(concat(lit(f"{name} "), "value").alias("value"))
                writer(rows, to(targets[place], deliveryGuarantee="exactly-once")).save()
                if dies:
                    raise RuntimeError("between the writes")

        return saved(stream(spark, events.options()), save, start)

    return run


@pytest.mark.parametrize(
    "after",
    [pytest.param((0, 1), id="same", marks=pytest.mark.long), pytest.param((1, 0), id="swapped")],
)
def test_each_row_is_there_once_after_a_death_between_the_writes(
    after: tuple[int, int], events: Events, targets: list[Events], run: Run, tmp_path: Path
) -> None:
    events.fill(ROWS)
    assert "between the writes" in run(0, 1, dies=True)
    assert [texts(each) for each in targets] == [FIRST, []]
    assert "between the writes" in run(*after, dies=True)
    for _ in range(2):
        assert run(*after) == ""
        assert [texts(each) for each in targets] == [FIRST, SECOND]
        last = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda each: each.name)
        for each in (last, last.with_name(f".{last.name}.crc")):
            each.unlink(missing_ok=True)
    events.write(["later"])
    assert run(*after) == ""
    assert [texts(each) for each in targets] == [[*FIRST, "first later"], [*SECOND, "second later"]]


def test_two_queries_of_one_application(
    spark: SparkSession, events: Events, targets: list[Events], start: Start
) -> None:
    """Spark lets any process commit that waits, so each query commits in both of them by turns."""
    events.fill(20)
    frame = stream(spark, events.options(maxOffsetsPerTrigger=1)).select("value")
    queries = []
    for each in targets:
        writing = frame.writeStream.format("pykafka")
        options = to(each, deliveryGuarantee="exactly-once")
        queries.append(start(writing.options(**options), each.name))
    for query, target in zip(queries, targets, strict=True):
        query.processAllAvailable()
        assert texts(target) == sorted(f"0:{row}" for row in range(20))
