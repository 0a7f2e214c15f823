"""A broker in memory that speaks Kafka's wire format over loopback sockets, for tests without JVM.

In the spirit of franz-go's kfake: one small handler per API, and `control` to answer anything else.
What it answers by itself is held against a real broker, in `test_as_kafka`.
"""

from tests.memory_broker.answers import Action, Answer, Hold, Raw
from tests.memory_broker.broker import ONE_TRY, MemoryBroker, Seen
from tests.memory_broker.cluster import KAFKA_2_1, NEWEST, REQUESTS
from tests.memory_broker.log import PartitionLog

__all__ = [
    "KAFKA_2_1",
    "NEWEST",
    "ONE_TRY",
    "REQUESTS",
    "Action",
    "Answer",
    "Hold",
    "MemoryBroker",
    "PartitionLog",
    "Raw",
    "Seen",
]
