"""The numbered events that a demo writes, and how many of them Kafka has taken."""

from dataclasses import dataclass
from random import Random

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer import KafkaProducer

_random = Random()


@dataclass
class Written:
    """The events so far: each has the next number. Another thread counts what Kafka has taken."""

    count: int = 0
    acknowledged: int = 0

    def on_delivery(self, _: object, error: KafkaError | None) -> None:
        """Count a record that Kafka has."""
        self.acknowledged += error is None


def send(producer: KafkaProducer, topic: str, rows: int, written: Written) -> None:
    """Send so many more events. No two of them are alike, since each has its number."""
    for number in range(written.count, written.count + rows):
        amount, user = _random.randrange(100), _random.randrange(1000)
        value = b'{"number": %d, "action": "click", "amount": %d}' % (number, amount)
        producer.send(topic, value, key=b"user-%d" % user, on_delivery=written.on_delivery)
    written.count += rows
