"""An in-memory broker for tests without a JVM. It speaks Kafka's protocol over loopback sockets.

The design follows franz-go's kfake: one small handler per API, and `control` for other answers.
`test_as_kafka` compares the handlers' answers with those of a real broker.
"""

from spark_kafka_source.testing.memory.answers import Action, Answer, Hold, Raw
from spark_kafka_source.testing.memory.broker import ONE_TRY, MemoryBroker, Seen
from spark_kafka_source.testing.memory.cluster import KAFKA_2_1, NEWEST, REQUESTS, TELEMETRY
from spark_kafka_source.testing.memory.log import PartitionLog

__all__ = [
    "KAFKA_2_1",
    "NEWEST",
    "ONE_TRY",
    "REQUESTS",
    "TELEMETRY",
    "Action",
    "Answer",
    "Hold",
    "MemoryBroker",
    "PartitionLog",
    "Raw",
    "Seen",
]
