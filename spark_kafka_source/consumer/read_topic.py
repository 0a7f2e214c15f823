"""Topics as Arrow, from a start to an end that is fixed when the read begins."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

# The first read of typed values imports what it needs.
from spark_kafka_source import registry, typed
from spark_kafka_source.client import KafkaClient, Topic, patient
from spark_kafka_source.client.configs import log_append_topics
from spark_kafka_source.consumer.arguments import checked_columns, checked_partition
from spark_kafka_source.consumer.topic_bounds import Bound, GivenBound
from spark_kafka_source.consumer.topic_config import TopicConfig
from spark_kafka_source.denials import topic_failure
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch import OffsetRange, RangeReader, latest_offsets
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, TokenProvider
from spark_kafka_source.records import COLUMNS_WITH_HEADERS, Chunk, record_batch, schema
from spark_kafka_source.records.freed_memory import keep_freed_memory
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.values.avro import TIME

logger = logger_of(__name__)

Topics: TypeAlias = str | TopicPartition | Iterable[str | TopicPartition]

_MOST_BYTES = 2 << 30
_TIMEOUT = "'kafka.default.api.timeout.ms'"


def read_topic(
    topic: Topics,
    *,
    start: Bound = "earliest",
    to: Bound = "latest",
    columns: Iterable[str] = COLUMNS_WITH_HEADERS,
    max_bytes: int = _MOST_BYTES,
    token_provider: TokenProvider | None = None,
    **configuration: object,
) -> pa.Table:
    """Return the records of a topic, or of several, as one table.

        table = read_topic("events", bootstrap_servers="localhost:9092")

    `topic` is a name, a `TopicPartition`, or a list of both. `start` and `to` are `"earliest"`,
    `"latest"`, a `datetime` with its zone, a text like it, a `timedelta` back from now, or a dict
    with one of these or an offset for each partition. The record at `start` is included, the one at
    `to` is not. The ends are looked up once, when the read begins. Records that come later are left
    out. A time stands for the first record of that time or later in each partition, or for the
    partition's end.

    Rows are in the order of topic, partition and offset. The columns are those of the Spark source;
    `columns` names some of them. The settings are those of `KafkaConsumer`, also `isolation_level`
    and `value_format`. No group is joined, and nothing is committed.

    Raises `ConfigurationError` for arguments that cannot be used, and when the table would take
    more than `max_bytes` of memory. Raises `RecordsLostError` for offsets that the log does not
    have, `BrokerError`, `KafkaTimeoutError`, `CorruptRecordError`, `BadRecordError`, and a
    registry's errors.
    """
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise ConfigurationError("max_bytes", f"found {max_bytes!r}", "Give a number from 1")
    config = TopicConfig.from_arguments(configuration, token_provider)
    read = _TopicRead(topic, start, to, columns, config)
    batches: dict[TopicPartition, list[pa.RecordBatch]] = defaultdict(list)
    size_bytes = 0
    for where, batch in read.batches():
        size_bytes += batch.nbytes
        if size_bytes > max_bytes:
            raise read.too_large(max_bytes, size_bytes)
        batches[where].append(batch)
    in_order = (batch for where in sorted(batches) for batch in batches[where])
    return pa.Table.from_batches(in_order, read.schema)


def read_topic_batches(
    topic: Topics,
    *,
    start: Bound = "earliest",
    to: Bound = "latest",
    columns: Iterable[str] = COLUMNS_WITH_HEADERS,
    token_provider: TokenProvider | None = None,
    **configuration: object,
) -> pa.RecordBatchReader:
    """Return the records of `read_topic` batch by batch, for more than fits in memory.

        for batch in read_topic_batches("events", bootstrap_servers="localhost:9092"):
            print(batch.num_rows)

    The reader is an iterator of `pyarrow.RecordBatch`, of a few MiB each. It knows its `schema`,
    and what takes Arrow's streams takes it: DuckDB, Polars, `pyarrow.dataset.write_dataset`. One
    thread at a time may use it. Partitions take turns. The batches of one partition are in
    the order of offsets.

    This call looks up partitions, ends and schemas, and raises as `read_topic` does. The errors of
    reading are raised by the iteration.
    """
    config = TopicConfig.from_arguments(configuration, token_provider)
    read = _TopicRead(topic, start, to, columns, config)
    return pa.RecordBatchReader.from_batches(read.schema, (batch for _, batch in read.batches()))


class _TopicRead:
    """One read: planned when it is made, and iterated once."""

    def __init__(
        self,
        topic: Topics,
        start: Bound,
        to: Bound,
        columns: Iterable[str],
        config: TopicConfig,
    ) -> None:
        self._topics = _partitions_by_topic(topic)
        self._columns = checked_columns(columns)
        now = datetime.now(UTC)
        self._start, self._to = GivenBound("start", start, now), GivenBound("to", to, now)
        self._config = config
        keep_freed_memory()
        with spelt(config.spelling), closing(KafkaClient(config.client)) as client:
            self._ranges = self._planned(client)
            self._typed = self._planned_columns()
        self._left = {planned.topic_partition: planned.size for planned in self._ranges}

    @property
    def schema(self) -> pa.Schema:
        """The schema of all batches."""
        return schema(self._columns) if self._typed is None else self._typed.schema

    def batches(self) -> Iterator[tuple[TopicPartition, pa.RecordBatch]]:
        """Yield batches that have records."""
        with ExitStack() as resources:
            client = resources.enter_context(closing(KafkaClient(self._config.client)))
            decode = self._decoding(resources)
            chunks = RangeReader(
                client,
                self._ranges,
                self._config.fetch,
                poll_timeout_ms=self._config.client.default_api_timeout_ms,
                timeout_option=_TIMEOUT,
            ).chunks()
            resources.enter_context(closing(chunks))
            # The spelling is that of this read only while it works, not while the caller does.
            while True:
                with spelt(self._config.spelling):
                    chunk = next(chunks, None)
                    batch = None if chunk is None else decode(chunk)
                if chunk is None or batch is None:
                    return
                where = chunk.topic_partition
                self._left[where] = self._ends[where] - chunk.next_offset
                del chunk  # A record may be large: its memory is free from here on.
                if batch.num_rows:
                    yield where, batch

    def too_large(self, max_bytes: int, size_bytes: int) -> ConfigurationError:
        """Return the error for a table of which so much is read already."""
        offsets = sum(planned.size for planned in self._ranges)
        done = offsets - sum(self._left.values())
        found = (
            f"is {max_bytes}, and the table takes more: about "
            f"{size_bytes * offsets // max(done, 1)} bytes, judged by {done} of {offsets} offsets"
        )
        expected = (
            "Give more if there is as much memory, a later 'start', fewer 'columns', or use "
            "read_topic_batches, which holds one batch at a time"
        )
        return ConfigurationError("max_bytes", found, expected)

    def _decoding(self, resources: ExitStack) -> Callable[[Chunk], pa.RecordBatch]:
        if self._typed is None:
            return partial(record_batch, columns=self._columns)
        sources = {}
        for name, part in self._typed.parts.items():
            schemas = None if part.registry is None else registry.client_of(part.registry)
            if schemas is not None:
                resources.enter_context(closing(schemas))
            sources[name] = part.source(schemas)
        return typed.TypedRecords(self._typed, sources).record_batch

    # -- the plan ----------------------------------------------------------------------------------

    def _planned_columns(self) -> "typed.TypedColumns | None":
        config = self._config.typed
        if not config.parts:
            return None
        topics = sorted(self._topics)
        return typed.plan_columns(config, self._columns, lambda: topics, TIME)

    def _planned(self, client: KafkaClient) -> list[OffsetRange]:
        level = self._config.fetch.isolation_level
        topics = {topic.name: topic for topic in client.run(_described(client, list(self._topics)))}
        partitions = [partition for name in topics for partition in self._partitions(topics[name])]
        latest = client.run(latest_offsets(client, partitions, level))
        starts = self._start.find(client, latest, level)
        ends = self._ends = self._to.find(client, latest, level)
        _check_order(starts, ends)
        if self._to.has_time:
            _warn_of_order(client, sorted(topics))
        return [
            OffsetRange(
                partition,
                starts[partition],
                ends[partition],
                topics[partition.topic].topic_id if topics[partition.topic].topic_id.int else None,
                latest[partition].leader_epoch,
            )
            for partition in sorted(latest)
        ]

    def _partitions(self, topic: Topic) -> list[TopicPartition]:
        there, numbers = topic.topic_partitions, self._topics[topic.name]
        if numbers is None:
            return there
        wanted = [TopicPartition(topic.name, number) for number in sorted(numbers)]
        unknown = [partition for partition in wanted if partition not in there]
        if unknown:
            expected = f"There are 0 to {len(there) - 1}"
            raise ConfigurationError("topic", f"there is no {unknown[0]}", expected)
        return wanted


def _partitions_by_topic(topic: Topics) -> dict[str, set[int] | None]:
    """Return the numbers of the partitions to read of each topic, or None for all."""
    is_partition = isinstance(topic, tuple) and len(topic) == 2 and not isinstance(topic[1], str)
    given: Any = [topic] if isinstance(topic, str) or is_partition else topic
    by_topic: dict[str, set[int] | None] = {}
    for entry in given if isinstance(given, Iterable) and not isinstance(given, bytes) else [given]:
        if isinstance(entry, str):
            by_topic[entry] = None
            continue
        partition = checked_partition(entry)
        numbers = by_topic.setdefault(partition.topic, set())
        if numbers is not None:
            numbers.add(partition.partition)
    if not by_topic or not all(by_topic):
        raise ConfigurationError("topic", "is not given", "Name the topic to read")
    return by_topic


async def _described(client: KafkaClient, names: list[str]) -> list[Topic]:
    """Return the topics. Raises `TopicNotFoundError` for one that stays unknown for two seconds."""

    async def attempt(deadline: Deadline) -> list[Topic]:
        topics = await client.topics(names, deadline)
        for topic in topics:
            if topic.error.code:
                raise topic_failure(topic.error, topic.name)
        return topics

    return await client.retrying("Metadata", patient(attempt))


def _check_order(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
    for partition, start in sorted(starts.items()):
        if start > ends[partition]:
            found = f"is offset {start} of {partition}, and 'to' is offset {ends[partition]}"
            raise ConfigurationError("start", found, "Give a start that is not after the end")


def _warn_of_order(client: KafkaClient, names: list[str]) -> None:
    unordered = sorted(set(names) - client.run(log_append_topics(client, names)))
    if unordered:
        logger.warning(
            "'to' ends each partition at its first record of that time or later. In %s the "
            "producers give the times (CreateTime), so older records may follow, and they are not "
            "read. To have them, read further and filter by the column 'timestamp'",
            ", ".join(unordered),
        )
