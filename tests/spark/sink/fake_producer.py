"""A producer that keeps its rows, and a worker's stock of such producers."""

import pyarrow as pa

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.delivery import ColumnsFuture, Delivery, Outcome, Run
from spark_kafka_source.topic_partition import TopicPartition


class FakeProducer:
    """A producer with one batch per call. A batch ends by `answer`, or at `flush`."""

    def __init__(self) -> None:
        self.topics: list[str | None] = []
        self.sent: list[pa.RecordBatch] = []
        self.fails: dict[int, KafkaError] = {}
        """Errors that calls raise, by the number of the call."""
        self.calls: list[str] = []
        self.answers_at_once = False
        self._deliveries: list[Delivery] = []

    def send_columns(self, topic: str | None, columns: pa.RecordBatch) -> ColumnsFuture:
        number = len(self.sent)
        if number in self.fails:
            raise self.fails[number]
        delivery = Delivery(TopicPartition(topic or "of the column", 0))
        delivery.closed(columns.num_rows)
        self.topics.append(topic)
        self.sent.append(columns)
        self._deliveries.append(delivery)
        if self.answers_at_once:
            self.answer(number)
        return ColumnsFuture([Run(delivery, 0, columns.num_rows)])

    def answer(self, number: int, error: KafkaError | None = None) -> None:
        """Set the outcome of a call's rows."""
        count = self.sent[number].num_rows
        self._deliveries[number].add(Outcome(0, count, 0, -1, error))

    def flush(self, timeout_seconds: float | None = None) -> None:
        self.calls.append("flush")
        for number, delivery in enumerate(self._deliveries):
            if not delivery.is_done:
                self.answer(number)

    def close(self, timeout_seconds: float | None = None) -> None:
        self.calls.append(f"close within {timeout_seconds} s")

    @property
    def rows(self) -> list[dict[str, object]]:
        """All rows given so far."""
        return [row for batch in self.sent for row in batch.to_pylist()]


class Makes:
    """A factory that keeps its producers."""

    def __init__(self) -> None:
        self.made: list[FakeProducer] = []

    def __call__(self, _: ProducerConfig) -> FakeProducer:
        self.made.append(FakeProducer())
        return self.made[-1]
