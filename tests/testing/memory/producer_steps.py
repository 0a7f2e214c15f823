"""Steps of a producer in a conversation; see `steps`.

A producer has a short name, and so has its transactional id. It uses the producer id and epoch
from the broker, unless a step says otherwise. `a-0=5` is the sequence of the first record for a-0,
or a committed offset of a-0.
"""

import time
from dataclasses import dataclass, field
from typing import Any

from spark_kafka_source.protocol import Response
from spark_kafka_source.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from spark_kafka_source.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from spark_kafka_source.protocol.messages.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from spark_kafka_source.records import encode_batch
from tests.testing.memory.sides import GROUP, Side, records
from tests.testing.memory.steps import NOBODY, At, Metadata, Question, Step, by_topic

FIRST_GENERATION = {ProduceRequest: 11, EndTxnRequest: 4, TxnOffsetCommitRequest: 4}

NOW_MS = int(time.time()) * 1_000
"""A broker that starts forgets a producer whose last records are older than a day."""

_TIMEOUT_MS = 30_000
_PATIENCE_SECONDS = 60.0
_STEP_SECONDS = 0.01
_BY_ID = 13


# -- any producer ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Init(Question):
    """Get a new producer id, or, with `goes_on`, a new epoch of the present producer id."""

    producer: str
    transactional_id: str | None = None
    goes_on: bool = False
    shift: int = 0
    timeout_ms: int = _TIMEOUT_MS
    highest_version: int = 5

    @property
    def speaker(self) -> str:
        return self.producer

    def request(self, side: Side) -> InitProducerIdRequest:
        producer_id, epoch = side.producer(self.producer) if self.goes_on else (-1, -1)
        name = self.transactional_id
        return InitProducerIdRequest(
            side.name(name) if name else name,
            self.timeout_ms,
            producer_id,
            epoch + self.shift,
        )

    def learn(self, side: Side, answer: Any) -> None:
        if not answer.error_code:
            side.learn_producer(self.producer, answer.producer_id, answer.producer_epoch)


@dataclass(frozen=True, repr=False)
class Produce(Question):
    """One batch of `count` records to each partition. Without a producer there is no sequence."""

    batches: str
    by: str = NOBODY
    count: int = 1
    transactional_id: str | None = None
    epoch_shift: int = 0
    acks: int = -1
    is_corrupt: bool = False
    highest_version: int = FIRST_GENERATION[ProduceRequest]

    @property
    def speaker(self) -> str:
        return self.by

    def request(self, side: Side) -> ProduceRequest:
        return ProduceRequest(
            transactional_id=side.name(self.transactional_id) if self.transactional_id else None,
            acks=self.acks,
            timeout_ms=_TIMEOUT_MS,
            topic_data=[
                TopicProduceData(
                    side.name(topic),
                    side.topic_id(topic),
                    [PartitionProduceData(at.partition, self._batch(side, at)) for at in those],
                )
                for topic, those in by_topic(self.batches)
            ],
        )

    def _batch(self, side: Side, at: At) -> bytes:
        producer_id, epoch = side.producer(self.by)
        data = encode_batch(
            records(self.count, at.number, NOW_MS),
            producer_id=producer_id,
            producer_epoch=epoch + self.epoch_shift if self.by else -1,
            base_sequence=at.number if self.by else -1,
            transactional=self.transactional_id is not None,
        )
        return data[:-1] + b"?" if self.is_corrupt else data


# -- transactions ----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class _OfTransaction(Question):
    """A producer's request about its transaction. `shift` is added to the epoch."""

    by: str
    shift: int = field(default=0, kw_only=True)

    @property
    def speaker(self) -> str:
        return self.by

    def _producer(self, side: Side) -> tuple[int, int]:
        producer_id, epoch = side.producer(self.by)
        return producer_id, epoch + self.shift


@dataclass(frozen=True, repr=False)
class AddPartitions(_OfTransaction):
    partitions: str
    highest_version: int = 3

    def request(self, side: Side) -> AddPartitionsToTxnRequest:
        topics = [
            AddPartitionsToTxnTopic(side.name(topic), [at.partition for at in those])
            for topic, those in by_topic(self.partitions)
        ]
        return AddPartitionsToTxnRequest(side.name(self.by), *self._producer(side), topics)


@dataclass(frozen=True, repr=False)
class AddOffsets(_OfTransaction):
    highest_version: int = 4

    def request(self, side: Side) -> AddOffsetsToTxnRequest:
        group_id = side.name(GROUP)
        return AddOffsetsToTxnRequest(side.name(self.by), *self._producer(side), group_id)


@dataclass(frozen=True, repr=False)
class CommitInTransaction(_OfTransaction):
    """Commit offsets of the group, for a member or for no member."""

    offsets: str
    member: str = NOBODY
    member_shift: int = 0
    highest_version: int = FIRST_GENERATION[TxnOffsetCommitRequest]
    metadata: str = ""

    def request(self, side: Side) -> TxnOffsetCommitRequest:
        return TxnOffsetCommitRequest(
            side.name(self.by),
            side.name(GROUP),
            *self._producer(side),
            side.generation(self.member) + self.member_shift,
            side.member_id(self.member),
            topics=[
                TxnOffsetCommitRequestTopic(
                    side.name(topic),
                    partitions=[
                        TxnOffsetCommitRequestPartition(at.partition, at.number, -1, self.metadata)
                        for at in those
                    ],
                )
                for topic, those in by_topic(self.offsets)
            ],
        )


@dataclass(frozen=True, repr=False)
class End(_OfTransaction):
    commit: bool = True
    highest_version: int = FIRST_GENERATION[EndTxnRequest]

    def request(self, side: Side) -> EndTxnRequest:
        return EndTxnRequest(side.name(self.by), *self._producer(side), self.commit)


@dataclass(frozen=True, repr=False)
class Waits(Step):
    """Send a request that may end a transaction, and wait until the transaction has ended."""

    question: Question
    transactional_id: str

    def take(self, side: Side) -> Response | None:
        answer = self.question.take(side)
        UntilEnded(self.transactional_id).take(side)
        return answer


# -- transactions, as an admin client sees them ----------------------------------------------------


@dataclass(frozen=True, repr=False)
class FindTransactions(Question):
    """Find the coordinator of a transactional id."""

    transactional_id: str
    highest_version: int = 6

    def request(self, side: Side) -> FindCoordinatorRequest:
        name = side.name(self.transactional_id)
        if self.highest_version < 4:
            return FindCoordinatorRequest(name, key_type=1)
        return FindCoordinatorRequest(key_type=1, coordinator_keys=[name])


@dataclass(frozen=True, repr=False)
class DescribeTransaction(Question):
    """Partitions of the group's offsets are left out: they depend on the group's name."""

    transactional_id: str

    def request(self, side: Side) -> DescribeTransactionsRequest:
        return DescribeTransactionsRequest([side.name(self.transactional_id)])

    def answered(self, side: Side, answer: Response) -> Response:
        assert isinstance(answer, DescribeTransactionsResponse)
        for topic in answer.transaction_states[0].topics:
            if topic.topic == "__consumer_offsets":
                topic.partitions = [0]
        return answer


@dataclass(frozen=True, repr=False)
class ListTransactions(Question):
    """List the transactions. Only these transactional ids are compared."""

    transactional_ids: str
    states: str = ""

    def request(self, side: Side) -> ListTransactionsRequest:
        return ListTransactionsRequest(self.states.split())

    def answered(self, side: Side, answer: Response) -> Response:
        assert isinstance(answer, ListTransactionsResponse)
        names = [side.name(each) for each in self.transactional_ids.split()]
        ours = [each for each in answer.transaction_states if each.transactional_id in names]
        return ListTransactionsResponse(error_code=answer.error_code, transaction_states=ours)


@dataclass(frozen=True, repr=False)
class DescribeProducers(Question):
    partitions: str

    def request(self, side: Side) -> DescribeProducersRequest:
        return DescribeProducersRequest(
            [
                TopicRequest(side.name(topic), [at.partition for at in those])
                for topic, those in by_topic(self.partitions)
            ]
        )


@dataclass(frozen=True, repr=False)
class UntilMade(Step):
    """Wait until a topic exists that a request creates."""

    topic: str

    def take(self, side: Side) -> None:
        question = Metadata(self.topic)
        until_seconds = time.monotonic() + _PATIENCE_SECONDS
        while side.ask(NOBODY, question.request(side)).topics[0].error_code:
            assert time.monotonic() < until_seconds, "the topic is not there"
            time.sleep(_STEP_SECONDS)
        side.learn_topic(self.topic)


@dataclass(frozen=True, repr=False)
class UntilEnded(Step):
    """Wait until all markers of the transaction are written: EndTxn is answered earlier."""

    transactional_id: str

    def take(self, side: Side) -> None:
        question = DescribeTransaction(self.transactional_id)
        until_seconds = time.monotonic() + _PATIENCE_SECONDS
        while self._state(side.ask(NOBODY, question.request(side))).startswith("Prepare"):
            assert time.monotonic() < until_seconds, "the transaction has not ended"
            time.sleep(_STEP_SECONDS)

    def _state(self, answer: DescribeTransactionsResponse) -> str:
        return answer.transaction_states[0].transaction_state
