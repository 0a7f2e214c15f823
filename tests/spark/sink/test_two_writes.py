"""Two writes to one topic in one `foreachBatch`, which fails once between them.

`docs/contributors/exactly-once-protocol.md` says that these need two prefixes. So one prefix is an
error at each start, and no row is lost without one.
"""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import concat, lit

from tests.spark.sink.written import saved, texts, to, writer
from tests.spark_session import Start
from tools.traffic import Events, stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROWS = 4
FIRST = [f"first 0:{row}" for row in range(ROWS)]
SECOND = [f"second 0:{row}" for row in range(ROWS)]

Run = Callable[..., str]


@pytest.fixture
def run(spark: SparkSession, events: Events, target: Events, start: Start) -> Run:
    """Function that runs a query on the test's checkpoint to its end, or to its error.

    It writes each micro-batch twice, with the prefixes given. It returns the error's text, or none.
    """
    events.fill(ROWS)

    def run(*prefixes: str, fails: bool = False) -> str:
        def save(frame: DataFrame, _: int) -> None:
            for name, prefix in zip(("first ", "second "), prefixes, strict=True):
                rows = frame.select(concat(lit(name), "value").alias("value"))
                options = to(
                    target,
                    deliveryGuarantee="exactly-once",
                    transactionalIdPrefix=f"{events.name[-8:]}-{prefix}",
                )
                writer(rows, options).save()
                if fails:
                    raise RuntimeError("between the writes")

        return saved(stream(spark, events.options()), save, start)

    return run


def test_one_prefix_is_an_error_at_each_start(target: Events, run: Run) -> None:
    """Otherwise the second write is taken for the first one's replay, and dropped."""
    assert "between the writes" in run("a", "a", fails=True)
    for _ in range(2):
        error = run("a", "a")
        assert error or texts(target) == FIRST + SECOND, "rows are lost in silence"
        assert "PrefixInUseError" in error
        assert "give the second write a prefix of its own" in error
        assert texts(target) == FIRST
    assert run("a", "b") == ""  # As the error says.
    assert texts(target) == FIRST + SECOND


def test_one_prefix_is_an_error_after_the_error_of_the_first_run(target: Events, run: Run) -> None:
    """The second write itself has failed, since it has no prefix of its own."""
    for _ in range(3):
        assert "give the second write a prefix of its own" in run("a", "a")
        assert texts(target) == FIRST


def test_with_two_prefixes_each_row_is_there_once(target: Events, run: Run) -> None:
    assert "between the writes" in run("a", "b", fails=True)
    assert texts(target) == FIRST
    for _ in range(2):
        assert run("a", "b") == ""
        assert texts(target) == FIRST + SECOND
