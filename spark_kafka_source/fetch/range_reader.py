"""The reader of offset ranges of any partitions, from each start to the record before the end."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from spark_kafka_source.client import UNKNOWN_TOPIC, KafkaClient, Topic, patient
from spark_kafka_source.errors import BrokerError, KafkaError, KafkaTimeoutError, error_named
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.fetch.losses import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    RecordsLostError,
    TopicGoneError,
)
from spark_kafka_source.fetch.positions import Position
from spark_kafka_source.fetch.ranges import OffsetRange, read_together
from spark_kafka_source.fetch.reader import LogReader
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversations, Deadline, wait_for
from spark_kafka_source.records import Chunk, RecordLimit, RecordTooLargeError
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

# The broker waits `remote.fetch.max.wait.ms` for it (KIP-1018).
_SLOW_STORAGE = ". With tiered storage, brokers answer so while their remote storage is slow"
_OTHER_TOPIC = error_named("INCONSISTENT_TOPIC_ID")


@dataclass(frozen=True, eq=False, slots=True)
class RangeReader:
    """A reader of ranges. `chunks` is iterated once, in any one thread.

    Each broker is asked for its ranges in the given order, for as many as may fit in one answer.
    The next fetch is in flight while the caller works on the records of this one.

    `poll_timeout_ms` bounds the wait for planned records: if no range goes on for that long, a
    `KafkaTimeoutError` names partition and offset, and `timeout_option`, which sets the time. With
    `skip_lost` the reader logs and skips lost records, instead of raising `RecordsLostError`, and
    records larger than `max_record_bytes`, instead of raising `RecordTooLargeError`. It never skips
    corrupt records.
    """

    client: KafkaClient
    ranges: Sequence[OffsetRange]
    config: FetchConfig
    _: KW_ONLY
    poll_timeout_ms: int = 120_000
    timeout_option: str = "kafkaConsumer.pollTimeoutMs"
    skip_lost: bool = False
    max_record_bytes: int = 256 << 20

    def chunks(self) -> Generator[Chunk]:
        """Yield the records of all ranges, checked and decompressed; each partition's in order.

        Raises `RecordsLostError`, `CorruptRecordError`, `KafkaTimeoutError`, `BrokerError`.
        """
        for ranges in read_together(self.ranges):
            yield from self._read(ranges)

    def _read(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Iterator[Chunk]:
        losses = _Losses(self.client, ranges, self.skip_lost)
        limit = RecordLimit(self.max_record_bytes, losses.too_large)
        conversations = Conversations()
        reader = LogReader(
            self.client,
            self.config,
            losses,
            conversations,
            limit=limit,
            keeps_sessions=False,
        )
        reader.positions.keep(ranges)
        for position in reader.positions:
            planned = ranges[position.topic_partition]
            position.begin(planned.start, planned.end, planned.leader_epoch, planned.topic_id)
        try:
            yield from self._chunks(reader, losses)
        finally:
            conversations.close()
            self.client.run(reader.fetcher.close())

    def _chunks(self, reader: LogReader, losses: "_Losses") -> Iterator[Chunk]:
        patience = Deadline.after_ms(self.poll_timeout_ms)
        while len(reader.positions):
            self._fetch(reader, losses)
            before = _left(reader)
            for position in reader.positions:
                if reader.is_ready(position):
                    yield from _hand_out(reader, position)
            unread = [
                position.topic_partition for position in reader.positions if not position.is_over
            ]
            reader.positions.keep(unread)
            if _left(reader) < before:
                patience = Deadline.after_ms(self.poll_timeout_ms)
            elif patience.expired and unread:  # Else all that was left was lost, and skipped.
                raise self._starved(losses.ranges, next(iter(reader.positions)))

    def _fetch(self, reader: LogReader, losses: "_Losses") -> None:
        """Wait until there is something to hand out, or an answer without records has come."""
        reader.fetcher.extend_deadlines()
        first = next(iter(reader.positions))
        what = f"Fetch of {first.topic_partition} at offset {first.fetch_offset}"
        try:
            attempt = patient(lambda deadline: _wait(reader, losses, deadline))
            timeout_ms = max(self.poll_timeout_ms, self.client.config.default_api_timeout_ms)
            self.client.run(self.client.retrying(what, attempt, timeout_ms=timeout_ms))
        except BrokerError as error:
            if error.error not in UNKNOWN_TOPIC:
                raise
            losses.topics_gone(reader, error)

    def _starved(
        self, ranges: Mapping[TopicPartition, OffsetRange], position: Position
    ) -> KafkaTimeoutError:
        is_written = (position.high_watermark or 0) > position.fetch_offset
        return KafkaTimeoutError(
            f"Cannot read {ranges[position.topic_partition]}: nothing at offset "
            f"{position.fetch_offset} within {self.poll_timeout_ms} ms "
            f"({self.timeout_option}); the partition's high watermark is "
            f"{position.high_watermark}, its last stable offset {position.last_stable_offset}"
            + (_SLOW_STORAGE if is_written else "")
        )


async def _wait(reader: LogReader, losses: "_Losses", deadline: Deadline) -> None:
    """Wait for records, or for an answer without an error. Raises the last error if all fail."""
    losses.begin()
    is_answered = False
    if not reader.fetcher.in_flight:
        reader.look()
    while True:
        reader.fetcher.ask(deadline)
        if is_answered or any(
            reader.is_ready(position) or position.is_over for position in reader.positions
        ):
            return
        losses.raise_unless(reader)
        if deadline.expired:
            raise losses.last_error or KafkaTimeoutError(losses.timeout_text(deadline))
        await wait_for(*reader.waits(deadline))
        is_answered = reader.fetcher.take()
        if not is_answered:
            losses.raise_unless(reader)
        reader.look()


def _hand_out(reader: LogReader, position: Position) -> Iterator[Chunk]:
    fetched = position.fetched.popleft()
    if position.next is None or fetched.offset != position.next.offset:
        position.refetch()
        return
    cut_batch_bytes = 0
    for chunk in fetched.chunks:
        position.handed_out(chunk.next_offset, fetched.leader_epoch)
        cut_batch_bytes = chunk.cut_batch_bytes
        yield chunk
        del chunk  # A record may be large: free it before the next chunk is made.
    if position.next.offset == fetched.offset and cut_batch_bytes:
        reader.ask_for_more(position, fetched, cut_batch_bytes)


def _left(reader: LogReader) -> int:
    """Return the number of offsets that are still to read."""
    return sum(
        max(0, position.end - position.next.offset)
        for position in reader.positions
        if position.end is not None and position.next is not None
    )


@dataclass(eq=False, slots=True)
class _Losses:
    """The handler of lost records of ranges: it raises, or skips them."""

    client: KafkaClient
    ranges: Mapping[TopicPartition, OffsetRange]
    skip_lost: bool
    last_error: KafkaError | None = None
    """The last error."""
    earlier: KafkaError | None = None
    unknown: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Forget earlier errors; only `timeout_text` has the last one."""
        self.earlier = self.last_error or self.earlier
        self.last_error = None
        self.unknown.clear()

    def raise_unless(self, reader: LogReader) -> None:
        """Raise the last error, if there is one and the reader awaits no answer.

        A look-up whose time was up is asked again: the time may have passed between two chunks.
        """
        if self.last_error is not None and self.last_error.has_remedy and not reader.awaits_answers:
            raise self.last_error

    def timeout_text(self, deadline: Deadline) -> str:
        """Return the text of an error for a wait without any answer."""
        text = f"No answer in {deadline.timeout_ms} ms"
        return f"{text}; the last error before: {self.earlier}" if self.earlier else text

    def out_of_range(self, _: Position) -> bool:
        """Return False: the error names the offsets of the log, which are looked up."""
        return False

    def made_anew(self, position: Position, _: TopicGoneError) -> None:
        """Look up the topic again: this broker's metadata may be older than the driver's."""
        where = position.topic_partition
        self.client.cluster.forget_leaders_of([where.topic])
        self.failed(BrokerError(_OTHER_TOPIC, f"Fetch of {where}"), position)

    def failed(self, error: KafkaError, position: Position | None = None) -> None:
        """Keep the error, for the case that nothing else can be read either."""
        self.last_error = error
        if position is not None and isinstance(error, BrokerError) and error.error in UNKNOWN_TOPIC:
            self.unknown.add(position.topic_partition.topic)

    def described(self, _: Sequence[Topic]) -> None:
        """Do nothing: `failed` gets the missing topics."""

    def topics_gone(self, reader: LogReader, error: BrokerError) -> None:
        """Treat the ranges of unknown topics as lost: the topics were unknown for too long."""
        topics, self.unknown = self.unknown, set()
        for position in reader.positions:
            if position.topic_partition.topic in topics and position.next is not None:
                lost = TopicGoneError(position.topic_partition, position.next.offset)
                lost.__cause__ = error
                self.lost(position, lost)

    def lost(self, position: Position, error: RecordsLostError) -> None:
        """Skip the lost records, or end the range before them if the log was truncated.

        Raises the error without `skip_lost`.
        """
        if not self.skip_lost:
            raise error
        end = position.end or 0
        lost_from, lost_to = error.offset, end
        if isinstance(error, OffsetOutOfRangeError) and error.offset < error.earliest:
            lost_to = min(error.earliest, end)
        planned = self.ranges[position.topic_partition]
        logger.warning("%s: %s; offsets %d to %d are skipped", planned, error, lost_from, lost_to)
        if isinstance(error, LogTruncatedError):
            position.end = min(error.offset, end)
            position.refetch()
        else:
            position.skip_to(lost_to)

    def too_large(self, error: RecordTooLargeError) -> None:
        """Skip one record. Raises the error without `skip_lost`."""
        if not self.skip_lost:
            raise error
        logger.warning("%s: %s; skipped", self.ranges[error.topic_partition], error)
