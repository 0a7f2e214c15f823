"""Topics that are deleted while a stream asks about them. The stream does not wait long."""

import pytest

from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.spark.conditions import DataLossError
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.testing.memory import Action, MemoryBroker, PartitionLog
from tests.spark.settings import parsed
from tests.spark.source.engine import READ_ALL, initial, latest

pytestmark = pytest.mark.memory(nodes=2)


def reader_of(broker: MemoryBroker, fails: str) -> KafkaStreamReader:
    return KafkaStreamReader(
        parsed(
            kafka_bootstrap_servers=str(broker.address()),
            kafka_retry_backoff_ms="0",
            **{"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "30"},
            subscribe="a,b",
            startingOffsets="earliest",
            failOnDataLoss=fails,
        )
    )


@pytest.fixture
def b_log(broker: MemoryBroker) -> PartitionLog:
    (log,) = broker.create_topic("b")
    log.append(b"x")
    return log


def delete_b(broker: MemoryBroker) -> None:
    """Delete topic `b` when its end is asked for. The metadata still named it just before."""

    def delete(_: object) -> Action:
        broker.cluster.topics.pop("b", None)
        return Action.HANDLE

    broker.control(ListOffsetsRequest, delete)


@pytest.mark.usefixtures("logs", "b_log")
def test_the_others_are_read_on_where_losses_are_passed_over(broker: MemoryBroker) -> None:
    reader = reader_of(broker, "false")
    first = latest(reader, initial(reader))
    delete_b(broker)
    broker.cluster.topics["a"].logs[0].append(b"more")
    second = latest(reader, first)
    assert second["offsets"] == {"a": {"0": 6, "1": 3}}
    reader.stop()


@pytest.mark.usefixtures("logs", "b_log")
def test_else_the_loss_is_told_by_its_name(broker: MemoryBroker) -> None:
    reader = reader_of(broker, "true")
    first = latest(reader, initial(reader))
    delete_b(broker)
    with pytest.raises(DataLossError, match=r"PARTITIONS_DELETED.*b-0"):
        reader.latestOffset(first, READ_ALL)
    reader.stop()
