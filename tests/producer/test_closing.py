"""Closing a producer waits only for its records in flight."""

import threading

from spark_kafka_source import KafkaProducer
from spark_kafka_source.errors import ClosedError
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.testing.memory import MemoryBroker

# Half of the wait of an idle producer's thread.
TIMEOUT_SECONDS = 30


def test_the_last_answer_ends_it() -> None:
    with MemoryBroker() as broker:
        (log,) = broker.create_topic("t")
        producer = KafkaProducer(bootstrap_servers=str(broker.address()))
        answer = broker.hold(ProduceRequest)
        future = producer.send("t", b"last")
        broker.wait_for(ProduceRequest)
        closing = threading.Thread(target=producer.close, daemon=True)
        closing.start()
        while not is_closed(producer):
            pass
        answer.release()
        closing.join(TIMEOUT_SECONDS)
        assert not closing.is_alive()
        assert future.result(0).offset == 0
        assert log.end_offset == 1


def is_closed(producer: KafkaProducer) -> bool:
    try:
        producer.partitions_for("t")
    except ClosedError:
        return True
    return False
