"""Members of the classic protocol, beside each other, with an in-memory coordinator."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.members import member, settle_all
from tests.memory_broker import MemoryBroker

T0, T1, T2, T3 = (TopicPartition("t", partition) for partition in range(4))


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker(2) as broker:
        broker.create_topic("t", 4)
        broker.cluster.coordinators["g"] = 1
        yield broker


def test_one_alone_owns_everything(broker: MemoryBroker) -> None:
    with member(broker) as one:
        one.settle(T0, T1, T2, T3)
        assert one.told.said == [("assigned", (T0, T1, T2, T3))]


@pytest.mark.parametrize("cooperative", [False, True])
def test_two(broker: MemoryBroker, cooperative: bool) -> None:
    with member(broker, cooperative=cooperative) as one:
        one.settle(T0, T1, T2, T3)
        with member(broker, cooperative=cooperative) as two:
            settle_all(one, two, partitions=4)
            print(one.told.said, two.told.said)
        one.settle(T0, T1, T2, T3)
        print(one.told.said, two.told.said)
