"""The order in which Spark before 4.2 asks a stream reader. `Position` relies on it.

A reader of this test notes its calls. It knows nothing of this project.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from spark_kafka_source.spark.source.position import WRAPPER
from tests.matrix.test_smoke import FROM_SPARK_4_2
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, failure

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(FROM_SPARK_4_2, reason="Spark 4.2 gives the position to `latestOffset`"),
    # Spark 4.0 leaves the sockets of rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed .socket:ResourceWarning"),
]

LATEST: list[object] = ["latestOffset"]
INITIAL: list[object] = ["initialOffset"]
TRIGGERS: dict[str, dict[str, Any]] = {
    "always": {"processingTime": "0 seconds"},
    "available now": {"availableNow": True},
    "once": {"once": True},
}
# The calls after the last micro-batch. The other two triggers end the run there.
AFTER: dict[str, list[list[object]]] = {"always": [LATEST], "available now": [], "once": []}
EACH_TRIGGER = pytest.mark.parametrize("trigger", TRIGGERS)


def counting_source(directory: Path) -> type[DataSource]:
    """Return a source of the numbers up to that in the file `end`. It notes calls in `calls`.

    A function defines the class, so Spark pickles it whole. No Python worker imports this module.
    """
    latest, calls = directory / "end", directory / "calls"

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:
            return self._noted(0, "initialOffset")

        def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # that of Spark 4.0
            return self._noted(int(latest.read_text()), "latestOffset")

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            self._noted(0, "partitions", start["at"], end["at"])
            return [InputPartition(0)]

        def commit(self, end: dict[str, int]) -> None:
            self._noted(0, "commit", end["at"])

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            return iter([(0,)])

        def _noted(self, at: int, *call: object) -> dict[str, int]:
            with calls.open("a") as file:
                file.write(json.dumps(call) + "\n")
            return {"at": at}

    class Counting(DataSource):
        @classmethod
        def name(cls) -> str:
            return "counting"

        def schema(self) -> str:
            return "number int"

        def streamReader(self, schema: object) -> DataSourceStreamReader:
            return Reader()

    return Counting


class Query:
    """A query that is started again and again on the same checkpoint."""

    def __init__(self, session: SparkSession, start: Start, directory: Path, trigger: str) -> None:
        self._directory, self._start, self._trigger = directory, start, trigger
        session.dataSource.register(counting_source(directory))
        self._frame = session.readStream.format("counting").load()
        self._fails = False

    def run(self, end: int, *, fails: bool = False) -> list[list[object]]:
        """Read up to `end`, or fail in the sink. Return the calls without repetitions."""
        (self._directory / "end").write_text(str(end))
        (self._directory / "calls").write_text("")
        self._fails = fails
        writing = self._frame.writeStream.foreachBatch(self._sink)
        query = self._start(writing.trigger(**TRIGGERS[self._trigger]))
        if fails:
            assert "the sink fails" in failure(query)
        elif self._trigger == "always":
            query.processAllAvailable()
        else:
            assert query.awaitTermination(TIMEOUT_SECONDS)
        query.stop()
        lines = (self._directory / "calls").read_text().splitlines()
        return [json.loads(line) for line, _ in groupby(lines)]

    def _sink(self, frame: DataFrame, _: int) -> None:
        frame.count()
        if self._fails:
            raise RuntimeError("the sink fails")


@EACH_TRIGGER
def test_a_new_query_is_not_told_a_position(
    session: SparkSession, start: Start, tmp_path: Path, trigger: str
) -> None:
    calls = Query(session, start, tmp_path, trigger).run(5)
    assert calls == [LATEST, INITIAL, ["partitions", 0, 5], *AFTER[trigger]]


@EACH_TRIGGER
def test_a_restarted_query_is_told_its_position_first(
    session: SparkSession, start: Start, tmp_path: Path, trigger: str
) -> None:
    query = Query(session, start, tmp_path, trigger)
    query.run(5)
    told, new = [["partitions", 5, 5], LATEST], [["commit", 5], ["partitions", 5, 8]]
    assert query.run(8) == [*told, *new, *AFTER[trigger]]
    assert query.run(8) == [["partitions", 8, 8], LATEST]


@EACH_TRIGGER
@pytest.mark.parametrize("first", [True, False])
def test_an_unfinished_micro_batch_is_told_and_run_before_anything_is_asked(
    session: SparkSession, start: Start, tmp_path: Path, trigger: str, first: bool
) -> None:
    query = Query(session, start, tmp_path, trigger)
    if not first:
        query.run(5)
    query.run(8, fails=True)
    again = [INITIAL, ["partitions", 0, 8]] if first else [["partitions", 5, 8]]
    goes_on = [LATEST, ["commit", 8], ["partitions", 8, 9], LATEST] if AFTER[trigger] else []
    assert query.run(9) == [["partitions", 8, 8], *again, *goes_on]


def test_sparks_wrapper_of_available_now_asks_before_it_tells(
    session: SparkSession, start: Start, tmp_path: Path
) -> None:
    """So `PositionToldLateError` names it. Spark's own default is not to use it."""
    assert session.conf.get(WRAPPER) == "false"
    query = Query(session, start, tmp_path, "available now")
    session.conf.set(WRAPPER, "true")
    try:
        query.run(5)
        assert query.run(8)[:2] == [LATEST, ["partitions", 5, 5]]
    finally:
        session.conf.unset(WRAPPER)
