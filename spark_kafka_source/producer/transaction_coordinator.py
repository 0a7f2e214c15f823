"""Requests to the coordinators of a transaction: InitProducerId, partitions, offsets, end (KIP-98).

A `Generation` of transactions has the versions of the requests. All brokers since 2.5 serve the
first one alike. The second needs fewer requests, and raises a producer's epoch at the end of each
transaction (KIP-890).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from spark_kafka_source.client import (
    LONGEST_SILENCE_MS,
    CoordinatorKey,
    CoordinatorKind,
    KafkaClient,
)
from spark_kafka_source.denials import Access, refusal
from spark_kafka_source.errors import (
    BrokerError,
    KafkaError,
    ProtocolError,
    error_code,
    error_named,
)
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.net import Deadline, together
from spark_kafka_source.options.kinds import INT32_MAX
from spark_kafka_source.producer.errors import transaction_error
from spark_kafka_source.producer.generation import Generation
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from spark_kafka_source.topic_partition import TopicPartition, each_partition, partitions_by_topic

R = TypeVar("R", bound=Response)

_NO_PRODUCER = ProducerId(-1, -1)
# A transaction still ends for some milliseconds after the answer, and the next one must wait for
# that. Kafka's producer asks again after the same time.
_FIRST_PAUSE_MS = 20
# A broker answers one connection's requests in order; more requests take another connection.
_MOST_BEHIND = 64
_NOT_ATTEMPTED = "OPERATION_NOT_ATTEMPTED"
_TOPIC_DENIED = error_named("TOPIC_AUTHORIZATION_FAILED")


class TransactionCoordinator:
    """Send requests to the coordinators of one transactional id, and of groups.

    The transaction commits offsets of these groups. The object keeps no state of a
    transaction: any process that knows the producer's id and epoch can go on with it. All methods
    are conversations. They last at most `timeout_ms` (default: `default.api.timeout.ms`), and try
    retriable errors again. After that they raise `KafkaTimeoutError`. A lasting error is a
    `ProducerFencedError`, a `TransactionAbortableError`, or another error, which ends the producer.
    """

    def __init__(
        self,
        client: KafkaClient,
        transactional_id: str,
        generation: Generation = Generation.FIRST,
    ) -> None:
        self._client = client
        self._transactional_id = transactional_id
        self._generation = generation
        self._key = CoordinatorKey.of_transaction(transactional_id)

    async def init_producer_id(
        self,
        transaction_timeout_ms: int,
        producer: ProducerId | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> ProducerId:
        """Return the id and epoch to write with, and fence producers with an older epoch.

        The broker aborts a transaction that is open. It also aborts each later one that is open
        for longer than `transaction_timeout_ms`. If `producer` is given, it is the present id and
        epoch, and gets a new epoch, unless it is fenced (KIP-360). Brokers check that last: by
        then they have aborted the open transaction of the successor.
        """
        producer_id, epoch = producer or _NO_PRODUCER
        request = InitProducerIdRequest(
            self._transactional_id, transaction_timeout_ms, producer_id, epoch
        )
        what = f"InitProducerId of {self._key}"
        answer = await self._ask(
            what, request, timeout_ms, lambda answer: self._check(answer.error_code, what)
        )
        return _producer_of(answer, what)

    async def add_partitions(
        self,
        producer: ProducerId,
        topic_partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Add these partitions to the transaction, before they are written to.

        The first ones begin the transaction.
        """
        partitions = sorted(set(topic_partitions))
        if not partitions:
            return
        topics = [
            AddPartitionsToTxnTopic(*each) for each in partitions_by_topic(partitions).items()
        ]
        request = AddPartitionsToTxnRequest(self._transactional_id, *producer, topics)
        api = "AddPartitionsToTxn"

        def check(answer: AddPartitionsToTxnResponse) -> None:
            codes = {
                TopicPartition(topic.name, each.partition_index): each.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            }
            where, code = _worst(api, partitions, codes)
            self._check(code, f"{api} of {where} to {self._key}", topic=where.topic)

        await self._ask(f"{api} to {self._key}", request, timeout_ms, check)

    async def add_offsets(
        self, producer: ProducerId, group_id: str, *, timeout_ms: int | None = None
    ) -> None:
        """Announce that the transaction is about to commit offsets of this group.

        In the second generation `commit_offsets` needs no announcement.
        """
        if self._generation.begins_by_writing:
            return
        request = AddOffsetsToTxnRequest(self._transactional_id, *producer, group_id)
        what = f"AddOffsetsToTxn of group {group_id!r} to {self._key}"
        await self._ask(
            what,
            request,
            timeout_ms,
            lambda answer: self._check(answer.error_code, what, group_id=group_id),
        )

    async def commit_offsets(
        self,
        producer: ProducerId,
        member: Member,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit these offsets with the transaction, at the group's coordinator.

        Call `add_offsets` first. `member` is the member that reads the partitions; with it, a
        member that has lost them cannot commit (KIP-447). A `member` without a member id is not
        checked so.
        """
        if not offsets:
            return
        key = CoordinatorKey.of_group(member.group_id)
        request = TxnOffsetCommitRequest(
            self._transactional_id,
            member.group_id,
            *producer,
            member.generation_id,
            member.member_id,
            member.group_instance_id,
            _topics(offsets),
        )
        api = "TxnOffsetCommit"

        def check(answer: TxnOffsetCommitResponse) -> None:
            codes = {where: row.error_code for where, row in each_partition(answer.topics)}
            where, code = _worst(api, sorted(offsets), codes)
            what = f"{api} of {where} for {key} by {self._key}"
            if code == _TOPIC_DENIED.code:  # The right to read.
                raise refusal(code, what, topic=where.topic)
            self._check(code, what, group_id=key.key)

        await self._ask(f"{api} for {key} by {self._key}", request, timeout_ms, check, key)

    async def end(
        self, producer: ProducerId, *, commit: bool, timeout_ms: int | None = None
    ) -> ProducerId:
        """Commit the transaction, or abort it. Return the id and epoch to go on with.

        A repeated call has no effect, until the id begins another transaction. INVALID_TXN_STATE
        says that the transaction ended the other way, or that nothing was added to it.
        """
        request = EndTxnRequest(self._transactional_id, *producer, commit)
        what = _end_of(self._key, commit=commit)
        answer = await self._ask(
            what, request, timeout_ms, lambda answer: self._check(answer.error_code, what)
        )
        return _after_end(producer, answer)

    async def _ask(
        self,
        what: str,
        request: Request[R],
        timeout_ms: int | None,
        check: Callable[[R], None],
        key: CoordinatorKey | None = None,
    ) -> R:
        """Return the first answer that `check` does not raise for. By default, ask for the id's."""
        max_version = self._generation.max_version(type(request))

        async def attempt(deadline: Deadline) -> R:
            try:
                answer = await self._client.send_to_coordinator(
                    request, key or self._key, deadline, max_version=max_version
                )
                check(answer)
            except BrokerError as error:
                raise transaction_error(error) from None
            return answer

        return await self._client.retrying(
            what, attempt, timeout_ms=timeout_ms, first_pause_ms=_FIRST_PAUSE_MS
        )

    def _check(self, code: int, what: str, **names: str) -> None:
        _check(code, what, transactional_id=self._transactional_id, **names)


async def end_each(
    client: KafkaClient,
    ends: Sequence[tuple[str, ProducerId]],
    *,
    commit: bool,
    generation: Generation = Generation.FIRST,
) -> list[ProducerId | KafkaError]:
    """Send the end of each transaction once. Return what `end` returns or raises, in their order.

    `ends` holds pairs of a transactional id and the producer. The requests to one coordinator go
    out one behind the other. Waits for `LONGEST_SILENCE_MS` at most. After a retriable error the
    outcome is unknown: `end` tries again.
    """
    deadline = Deadline.after_ms(LONGEST_SILENCE_MS)
    with suppress(KafkaError):  # Each end asks for its coordinator if it is still unknown.
        await client.learn_coordinators(CoordinatorKind.TRANSACTION, dict(ends), deadline)

    async def end(transactional_id: str, producer: ProducerId) -> ProducerId:
        key = CoordinatorKey.of_transaction(transactional_id)
        request = client.ask(
            EndTxnRequest(transactional_id, *producer, commit),
            await client.coordinator(key, deadline),
            deadline,
            most_in_flight=_MOST_BEHIND,
            max_version=generation.max_version(EndTxnRequest),
        )
        try:
            answer = await client.answer_of(request)
            what = _end_of(key, commit=commit)
            _check(answer.error_code, what, transactional_id=transactional_id)
        except BrokerError as error:
            client.recover(error)
            raise transaction_error(error) from None
        return _after_end(producer, answer)

    ended = await together(end(*transaction) for transaction in ends)
    return [conversation.error() or conversation.result() for conversation in ended]


def _after_end(producer: ProducerId, answer: EndTxnResponse) -> ProducerId:
    """Return the id and epoch to go on with. Brokers tell them in the second generation only."""
    if answer.producer_id < 0:
        return producer
    return ProducerId(answer.producer_id, answer.producer_epoch)


def _end_of(key: CoordinatorKey, *, commit: bool) -> str:
    return f"EndTxn ({'commit' if commit else 'abort'}) of {key}"


async def new_producer_id(client: KafkaClient, *, timeout_ms: int | None = None) -> ProducerId:
    """Return an id and epoch for idempotent writing without transactions; any broker gives one.

    Waits and raises as `TransactionCoordinator` does.
    """
    what = "InitProducerId"
    request = InitProducerIdRequest(None, INT32_MAX)

    async def attempt(deadline: Deadline) -> ProducerId:
        # A lost answer wastes an id, which does no harm.
        answer = await client.send_to_any(request, deadline)
        _check(answer.error_code, what)
        return _producer_of(answer, what)

    return await client.retrying(what, attempt, timeout_ms=timeout_ms)


def _producer_of(answer: InitProducerIdResponse, what: str) -> ProducerId:
    producer = ProducerId(answer.producer_id, answer.producer_epoch)
    if min(producer) < 0:
        raise ProtocolError(f"{what}: the answer has no producer id, but {producer}")
    return producer


def _check(code: int, what: str, **names: str) -> None:
    if code:
        raise refusal(code, what, access=Access.WRITE, **names)


def _worst(
    api: str, partitions: Sequence[TopicPartition], codes: Mapping[TopicPartition, int]
) -> tuple[TopicPartition, int]:
    """Return the error to raise, or 0. A lasting error comes before a retriable one."""
    for where in partitions:
        if where not in codes:
            raise ProtocolError(f"{api} of {where}: the answer leaves it out")

    def rank(where: TopicPartition) -> int:
        error = error_code(codes[where])
        if not error.code:
            return 3
        return 2 if error.name == _NOT_ATTEMPTED else int(error.retriable)

    worst = min(partitions, key=rank)
    return worst, codes[worst]


def _topics(
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[TxnOffsetCommitRequestTopic]:
    by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), at in offsets.items():
        by_topic[topic].append(
            TxnOffsetCommitRequestPartition(partition, at.offset, at.leader_epoch, at.metadata)
        )
    return [
        TxnOffsetCommitRequestTopic(name, partitions=partitions)
        for name, partitions in by_topic.items()
    ]
