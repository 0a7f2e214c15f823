"""The task and the query of an attempt, from Spark's task context."""

import pytest
from pyspark import TaskContext

from spark_kafka_source.spark.sink.guarantee import Attempt

OF_A_STREAM = {
    "sql.streaming.queryId": "q",
    "streaming.sql.batchId": "12",
    "spark.jobGroup.id": "r",
}


class Context:
    """Stand-in for Spark's task context."""

    def __init__(self, properties: dict[str, str]) -> None:
        self._properties = properties

    def partitionId(self) -> int:
        return 5

    def attemptNumber(self) -> int:
        return 2

    def getLocalProperty(self, key: str) -> str | None:
        return self._properties.get(key)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (OF_A_STREAM, Attempt(5, 2, "q", "r", 12)),
        ({}, Attempt(5, 2)),
        ({"spark.jobGroup.id": "a notebook's"}, Attempt(5, 2)),
    ],
    ids=["stream", "batch", "batch in a group of jobs"],
)
def test_a_query_is_known_in_its_tasks(
    properties: dict[str, str], expected: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskContext, "get", lambda: Context(properties))
    assert Attempt.current() == expected


def test_outside_of_a_task_there_is_none() -> None:
    assert Attempt.current() == Attempt(0, 0)
