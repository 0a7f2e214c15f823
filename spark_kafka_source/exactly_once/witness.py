"""The log as the witness: a reader of what became of a decided transaction.

The log has the records of each transaction, and after them one control record, COMMIT or ABORT, of
that producer. Readers obey it, whoever wrote it. So this reads a winner's outcome at its place, as
a reader of committed records does (KIP-98), and infers nothing from later transactions under its
id.

| at the place, for readers of committed records | the winner |
|---|---|
| its batch, among the aborted transactions | aborted |
| its batch, not among them | committed |
| nothing yet: a transaction is open there | by the control record after the place, if it is there |
| a batch of another producer, or the end of the log | replaced, as by an unclean election |
| the log begins later, or the batch is compacted away | unknown |
| the topic has another id, or is deleted | gone with its topic |
"""

from spark_kafka_source.client import LEADER, KafkaClient
from spark_kafka_source.client.unknown_topics import UNKNOWN_TOPIC, patient
from spark_kafka_source.denials import topic_failure
from spark_kafka_source.errors import BrokerError, ProtocolError, error_named
from spark_kafka_source.exactly_once.decision import Outcome, Winner
from spark_kafka_source.fetch.losses import OFFSET_OUT_OF_RANGE
from spark_kafka_source.fetch.offsets import earliest_offsets, latest_offsets
from spark_kafka_source.fetch.request import fetch_topics, highest_version, partition_fetches
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer import Place
from spark_kafka_source.protocol.messages.fetch import FetchRequest, PartitionData
from spark_kafka_source.records import IsolationLevel, batches
from spark_kafka_source.records.batch import BatchHeader
from spark_kafka_source.records.transactions import is_abort
from spark_kafka_source.topic_partition import TopicPartition

_BYTES = 1 << 20
_WAIT_MS = 500
_OTHER_ID = error_named("INCONSISTENT_TOPIC_ID")


async def found_in_log(
    client: KafkaClient, winner: Winner, place: Place, *, timeout_ms: int | None = None
) -> Outcome:
    """Return a winner's outcome as its place tells it; `OPEN` if its end is not there yet.

    Waits for leaders for up to `timeout_ms`, by default `default.api.timeout.ms`. Raises
    `BrokerError` without the right READ on the topic.
    """
    where = place.topic_partition

    async def attempt(deadline: Deadline) -> Outcome:
        (topic,) = await client.topics([where.topic], deadline)
        if topic.error.code:
            raise topic_failure(topic.error, topic.name)
        if place.is_gone(topic.topic_id):
            raise topic_failure(_OTHER_ID, topic.name)  # A broker may not know the new topic yet.
        return await _Log(client, where, deadline).outcome(winner, place.offset)

    what = f"a look at {where} at offset {place.offset}"
    try:
        return await client.retrying(what, patient(attempt), timeout_ms=timeout_ms)
    except BrokerError as error:
        if error.error in UNKNOWN_TOPIC:
            return Outcome.TOPIC_GONE
        raise


class _Log:
    """The log of one partition, as its leader tells it."""

    def __init__(self, client: KafkaClient, where: TopicPartition, deadline: Deadline) -> None:
        self._client, self._where, self._deadline = client, where, deadline

    async def outcome(self, winner: Winner, offset: int) -> Outcome:
        data = await self._fetched(offset, IsolationLevel.READ_COMMITTED)
        if data.error_code:
            earliest = (await earliest_offsets(self._client, [self._where]))[self._where]
            return Outcome.UNKNOWN if earliest > offset else Outcome.REPLACED
        headers = [header for header, _ in batches(memoryview(data.records or b""), self._where)]
        if not headers:
            return await self._marker(winner, offset)
        if (found := _at(headers[0], winner, offset)) is not None:
            return found
        aborted = data.aborted_transactions or ()
        is_aborted = any(
            each.producer_id == winner.producer.producer_id and each.first_offset <= offset
            for each in aborted
        )
        return Outcome.ABORTED if is_aborted else Outcome.COMMITTED

    async def _marker(self, winner: Winner, offset: int) -> Outcome:
        """Read on behind an open transaction, which may be another producer's."""
        position = offset
        while True:
            data = await self._fetched(position, IsolationLevel.READ_UNCOMMITTED)
            if data.error_code:
                return Outcome.OPEN  # The log was cut meanwhile. The next look says so.
            at = position
            for header, payload in batches(memoryview(data.records or b""), self._where):
                if at == offset and (found := _at(header, winner, offset)) is not None:
                    return found
                at = header.last_offset + 1
                if header.is_control and header.producer_id == winner.producer.producer_id:
                    if not header.record_count:  # Compacted.
                        return Outcome.UNKNOWN
                    return Outcome.ABORTED if is_abort(header, payload) else Outcome.COMMITTED
            if at == position == offset:
                return await self._beyond_the_end(offset)
            if at == position:
                return Outcome.OPEN
            position = at

    async def _beyond_the_end(self, offset: int) -> Outcome:
        """Tell an open transaction from a log that ends before the place.

        A new leader tells no end before it knows that of its predecessor (KIP-207).
        """
        latest = (await latest_offsets(self._client, [self._where]))[self._where]
        return Outcome.REPLACED if latest.offset <= offset else Outcome.OPEN

    async def _fetched(self, offset: int, isolation_level: IsolationLevel) -> PartitionData:
        """Return the leader's answer. It has an error only for an offset out of range."""
        leaders = await self._client.leaders([self._where], self._deadline)
        broker, _ = leaders[self._where]
        fetches = partition_fetches(self._client.cluster, {self._where: offset}, _BYTES)
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=_BYTES,
            isolation_level=isolation_level,
            topics=fetch_topics(fetches),
        )
        answer = await self._client.send(
            request,
            broker,
            self._deadline,
            max_version=highest_version(each.topic_id for each in fetches.values()),
            keeps_role=lambda: self._client.still_leads(broker, [self._where]),
        )
        what = f"Fetch of {self._where} at offset {offset}"
        if answer.error_code:
            raise LEADER.refusal(answer.error_code, what, self._where)
        told = [each for topic in answer.responses for each in topic.partitions]
        if [each.partition_index for each in told] != [self._where.partition]:
            raise ProtocolError(f"{what}: the answer leaves it out")
        (data,) = told
        if data.error_code not in (0, OFFSET_OUT_OF_RANGE.code):
            raise LEADER.refusal(data.error_code, what, self._where)
        return data


def _at(first: BatchHeader, winner: Winner, offset: int) -> Outcome | None:
    """Return the outcome if the first batch at a place is not the winner's."""
    if first.base_offset > offset:
        return Outcome.UNKNOWN
    owner = first.producer_id, first.producer_epoch
    is_own = first.is_transactional and not first.is_control and owner == winner.producer
    return None if is_own else Outcome.REPLACED
