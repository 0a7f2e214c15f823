"""Fixtures: the logs of a topic `a` in memory, and planners that ask its brokers."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from spark_kafka_source.records import Record
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from tests.spark.settings import Plan, parsed


@pytest.fixture
def logs(broker: MemoryBroker) -> list[PartitionLog]:
    """Logs of topic `a`: a-0 has offsets 2 to 5, a-1 has 0 to 3."""
    logs = broker.create_topic("a", 2, topic_id=UUID(int=7))
    for log, count in zip(logs, (5, 3), strict=True):
        log.append(*(Record(timestamp_ms=1_000 + 100 * offset) for offset in range(count)))
    logs[0].log_start_offset = 2
    return logs


@pytest.fixture
def plan(broker: MemoryBroker) -> Iterator[Plan]:
    """Function that makes a planner. It does not wait for unknown topics, unless options say so."""
    made = []

    def plan(**options: str) -> OffsetPlanner:
        settings = {
            "kafka.bootstrap.servers": str(broker.address()),
            "kafka.retry.backoff.ms": "0",
            "fetchOffset.numRetries": "0",
        }
        made.append(OffsetPlanner(parsed(**settings | options)))
        return made[-1]

    yield plan
    for planner in made:
        planner.close()
