"""A producer that writes to a new topic before its leaders serve it, as in KAFKA-14359.

A broker names itself the leader before it serves the partition: it refuses one batch, and takes the
next one, whatever its sequence is.
"""

import pytest

from spark_kafka_source.errors import error_named
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.writing import HOUR_MS, IN_TIME, producing, values

COUNT = 90


@pytest.mark.parametrize(
    "error", ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"]
)
def test_no_record_is_lost_doubled_or_out_of_order_and_none_waits(error: str) -> None:
    with MemoryBroker(3) as broker:
        logs = broker.create_topic("new", 3)
        for node, times in ((0, 1), (1, 7), (2, 2)):
            broker.control(ProduceRequest, error_named(error), times=times, node_id=node)
        # Nothing is given up within the test's patience: a stall is a failure.
        settings = {"batch_size": 1, "linger_ms": 0, "delivery_timeout_ms": HOUR_MS}
        with producing(broker, **settings) as producer:
            sent = [producer.send("new", b"%d" % each, partition=each % 3) for each in range(COUNT)]
            offsets = [each.result(IN_TIME).offset for each in sent]
        assert offsets == [each // 3 for each in range(COUNT)]
        for partition, log in enumerate(logs):
            assert [int(each or b"") for each in values(log)] == list(range(partition, COUNT, 3))
        assert not [each for each in broker._controls if each.times]
