"""The fate of a Produce request's batches: delivered, sent again, split, or failed.

KIP-360 has the remedy for lost sequences:
https://cwiki.apache.org/confluence/display/KAFKA/KIP-360
"""

import time
from dataclasses import dataclass
from enum import Enum, auto

from spark_kafka_source.client import Asked, Broker, KafkaClient
from spark_kafka_source.denials import Access, refusal
from spark_kafka_source.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    ProtocolError,
    Remedy,
    error_code,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Running
from spark_kafka_source.producer.accumulator import Accumulator
from spark_kafka_source.producer.batch import PartitionQueue, ProducerBatch
from spark_kafka_source.producer.config import Acks, ProducerConfig
from spark_kafka_source.producer.delivery import NO_OFFSET
from spark_kafka_source.producer.identity import Identity
from spark_kafka_source.producer.metrics import ProducerMetrics
from spark_kafka_source.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from spark_kafka_source.records import HEADER_BYTES
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)


class Reaction(Enum):
    """The next step for a batch."""

    DELIVERED = auto()
    RETRY = auto()
    FOLLOW = auto()
    """Send again behind the earlier batch that made this one fail, without the usual pause."""
    RENUMBER = auto()
    """Send again with a new epoch and sequences from 0: the leader does not know the old ones."""
    SPLIT = auto()
    LEAVE_OUT = auto()
    """Send again without the records that the broker names."""
    FAIL = auto()


_REACTIONS = {
    "NONE": Reaction.DELIVERED,
    # The leader wrote the batch the first time, and the answer was lost.
    "DUPLICATE_SEQUENCE_NUMBER": Reaction.DELIVERED,
    "MESSAGE_TOO_LARGE": Reaction.SPLIT,
    "RECORD_LIST_TOO_LARGE": Reaction.SPLIT,
    "INVALID_RECORD": Reaction.LEAVE_OUT,
    "INVALID_TIMESTAMP": Reaction.LEAVE_OUT,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Reaction.RENUMBER,
    "UNKNOWN_PRODUCER_ID": Reaction.RENUMBER,
    "INVALID_PRODUCER_EPOCH": Reaction.RENUMBER,
    "INVALID_PRODUCER_ID_MAPPING": Reaction.RENUMBER,
}
_OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


def reaction(error: ErrorCode, *, is_first: bool, may_renumber: bool) -> Reaction:
    """Return the reaction to a batch that was answered with this error.

    `is_first` says that no earlier batch is unfinished. If one is, its failure explains a sequence
    out of order. `may_renumber` is true for a producer without transactions. In a transaction, a
    lost sequence means that the transaction must be aborted.
    """
    usual = _REACTIONS.get(error.name)
    if usual is Reaction.RENUMBER:
        if error.name == _OUT_OF_ORDER and not is_first:
            return Reaction.FOLLOW
        return Reaction.RENUMBER if may_renumber else Reaction.FAIL
    if usual is None:
        return Reaction.RETRY if error.retriable else Reaction.FAIL
    return usual


_AGAIN = frozenset({Reaction.RETRY, Reaction.FOLLOW, Reaction.RENUMBER})
"""The reactions that send a batch again as it is."""


@dataclass(eq=False, slots=True)
class RequestInFlight:
    """A request on its way to a leader, with the batches in it."""

    asked: Asked[ProduceResponse]
    broker: Broker
    batches: dict[TopicPartition, ProducerBatch]
    answer: Running[ProduceResponse]
    sent_at_seconds: float


@dataclass(frozen=True, eq=False, slots=True)
class ProduceAnswers:
    """Handle the leaders' answers, in the producer's thread."""

    config: ProducerConfig
    client: KafkaClient
    accumulator: Accumulator
    identity: Identity
    metrics: ProducerMetrics

    def handle(self, request: RequestInFlight) -> None:
        """Handle the leader's answer about the batches of a request."""
        answers: dict[TopicPartition, PartitionProduceResponse] = {}
        failure: KafkaError | None = None
        try:
            response = request.answer.result()
        except KafkaError as error:
            failure = error
            self.client.cluster.forget_leaders_of({each.topic for each in request.batches})
        else:
            self.metrics.request_ms.record((time.monotonic() - request.sent_at_seconds) * 1000)
            if self.config.acks is not Acks.NONE:
                self.metrics.throttled_ms.record(response.throttle_time_ms)
                answers = _of_batches(response, request)
                self._learn_leaders(response, answers)
        # In the order of the first sending: later batches fail because of the first failure.
        for where, batch in sorted(request.batches.items(), key=lambda item: item[1].order):
            queue = self.accumulator.queue(where)
            queue.in_flight.remove(batch)
            if batch.is_finished:  # It has failed before, when its time was up.
                self.accumulator.release(batch)
            elif failure is not None:
                what = Reaction.RETRY if failure.has_remedy else Reaction.FAIL
                self._react(queue, batch, what, failure)
            elif self.config.acks is Acks.NONE:
                self._delivered(batch)
            elif where in answers:
                self._answered(queue, batch, answers[where])
            else:
                said = f"the answer of {request.broker.address} has nothing about {where}"
                self.fail(queue, batch, ProtocolError(said))

    def _learn_leaders(
        self, response: ProduceResponse, answers: dict[TopicPartition, PartitionProduceResponse]
    ) -> None:
        """Take the new leaders that the answer names (KIP-951).

        If a moved partition's new leader is not named, forget its leader, so that it is looked up.
        """
        for where, answer in answers.items():
            is_moved = error_code(answer.error_code).remedy is Remedy.REFRESH_METADATA
            if not self.client.cluster.learn_named(where, answer, response) and is_moved:
                self.client.cluster.forget_leaders_of([where.topic])

    def _answered(
        self, queue: PartitionQueue, batch: ProducerBatch, answer: PartitionProduceResponse
    ) -> None:
        code = error_code(answer.error_code)
        sent = (earlier for earlier in self.accumulator.batches(queue) if earlier.order)
        is_first = not any(earlier < batch for earlier in sent)
        what = reaction(code, is_first=is_first, may_renumber=self.identity.may_renumber)
        if what is Reaction.DELIVERED:
            queue.is_known = queue.is_known or batch.producer == queue.producer
            if batch.encoded is not None:
                self.accumulator.sizes.accepted(batch.topic_partition.topic, batch.encoded)
            offset = answer.base_offset if not code.code else NO_OFFSET
            self._delivered(batch, offset, answer.log_append_time_ms)
            return
        error = self._error(batch, code, answer.error_message)
        if what is Reaction.SPLIT and batch.encoded is not None and batch.record_count > 1:
            self.metrics.splits.record(1)
            most = self.accumulator.sizes.refused(batch.topic_partition.topic, batch.encoded)
            self._replace(queue, batch, batch.split(most, self.config.compression))
        elif what is Reaction.LEAVE_OUT and (named := _named(answer, batch)):
            self.metrics.failed.record(len(named))
            # Before the outcome is known: a waiting caller must see that its transaction failed.
            self.identity.failed(error, was_sent=True)
            for number, said in named.items():
                batch.failed_record(number, self._error(batch, code, said or answer.error_message))
            self._replace(queue, batch, batch.without(list(named), self.config.compression))
        else:
            self._react(queue, batch, what, error)

    def _react(
        self, queue: PartitionQueue, batch: ProducerBatch, what: Reaction, error: KafkaError
    ) -> None:
        """Send a batch again as it is, or fail it."""
        has_tries = what is not Reaction.RETRY or batch.tries < self.config.retries
        if what not in _AGAIN or not has_tries:
            self.fail(queue, batch, error)
            return
        logger.debug("%s is sent again: %s", batch.topic_partition, error)
        batch.error = error
        batch.tries += 1
        if what is Reaction.RENUMBER:
            self.identity.renumber(queue)
        if what is not Reaction.FOLLOW:
            pause_seconds = self.client.pause_seconds(batch.tries)
            batch.retry_at_seconds = time.monotonic() + pause_seconds
        self.metrics.retries.record(1)
        self.accumulator.put_back(queue, [batch])

    def _error(self, batch: ProducerBatch, code: ErrorCode, said: str | None) -> BrokerError:
        where, advice = batch.topic_partition, None
        if code.name in {"MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"}:
            size = batch.encoded.size - HEADER_BYTES if batch.encoded else 0
            advice = (
                f"a record of {size} bytes is over the topic's 'max.message.bytes'. Raise that, or"
                " send smaller values"
            )
        return refusal(
            code,
            f"Produce to {where}",
            said,
            advice=advice,
            topic=where.topic,
            access=Access.WRITE,
        )

    def _replace(
        self, queue: PartitionQueue, batch: ProducerBatch, parts: list[ProducerBatch]
    ) -> None:
        """Put the parts of a batch back into the queue in its place."""
        for part in parts:
            part.tries += 1
        if parts:
            self.accumulator.put_back(queue, parts)
        else:
            self.accumulator.release(batch)

    def _delivered(
        self, batch: ProducerBatch, offset: int = NO_OFFSET, append_time_ms: int = -1
    ) -> None:
        self.metrics.written.record(batch.record_count)
        self.identity.batch_written(batch.topic_partition, offset)
        batch.delivered(offset, append_time_ms)
        self.accumulator.release(batch)

    def fail(self, queue: PartitionQueue, batch: ProducerBatch, error: KafkaError) -> None:
        """Fail a batch's records with this error."""
        self.metrics.failed.record(batch.record_count)
        self.identity.failed(error, was_sent=bool(batch.order))
        batch.failed(error)
        if batch not in queue.in_flight:
            self.accumulator.release(batch)

    def fail_all(self, error: KafkaError) -> None:
        """Fail all that is left when the thread ends."""
        for parcel in self.accumulator.parcels():
            self.metrics.failed.record(len(parcel.rows))
            self.identity.failed(error, was_sent=False)
            self.accumulator.placed(parcel, [parcel.lost((), error)])
        self.accumulator.close_open()
        for queue in self.accumulator.queues():
            in_flight, queue.in_flight = queue.in_flight, []
            for batch in [*in_flight, *self.accumulator.drop(queue, lambda _: False)]:
                self.fail(queue, batch, error)
        for delivery in self.accumulator.unfinished():  # Of the batch that ended this thread.
            delivery.give_up(error)


def _of_batches(
    response: ProduceResponse, request: RequestInFlight
) -> dict[TopicPartition, PartitionProduceResponse]:
    answers = {
        TopicPartition(topic.name, answer.index): answer
        for topic in response.responses
        for answer in topic.partition_responses
    }
    return {where: answer for where, answer in answers.items() if where in request.batches}


def _named(answer: PartitionProduceResponse, batch: ProducerBatch) -> dict[int, str | None]:
    """Return the records that a broker refuses, each with its reason."""
    return {
        refused.batch_index: refused.batch_index_error_message
        for refused in answer.record_errors
        if 0 <= refused.batch_index < batch.record_count
    }
