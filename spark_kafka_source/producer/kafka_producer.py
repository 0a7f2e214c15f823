"""Kafka's producer, for single records and Arrow columns.

https://kafka.apache.org/documentation/#producerapi. The module is long because it has all calls of
one public class.
"""

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Never
from uuid import UUID

import pyarrow as pa

# The first producer with typed values imports what they need.
from spark_kafka_source import typed
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.client.arguments import refuse_positional
from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.client.given_objects import refuse_async
from spark_kafka_source.client.metrics import MetricsReporter, read
from spark_kafka_source.client.reporting import (
    METRIC_REPORTERS,
    GivenReporter,
    Reporting,
    given_reporters,
)
from spark_kafka_source.client.serde_arguments import SERIALIZE, argument_of, serde
from spark_kafka_source.errors import ClosedError, KafkaTimeoutError
from spark_kafka_source.forks import OwnProcess, ThisProcess, used_where_made
from spark_kafka_source.groups import Member, OffsetAndMetadata
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline, TokenProvider
from spark_kafka_source.producer.accumulator import Accumulator
from spark_kafka_source.producer.columns import pieces_of
from spark_kafka_source.producer.config import ProducerConfig
from spark_kafka_source.producer.delivery import (
    ColumnsFuture,
    OnDelivery,
    deadline_after,
)
from spark_kafka_source.producer.errors import TransactionStateError, UnsendableRecordError
from spark_kafka_source.producer.given_columns import HasArrowArray, HasArrowStream, checked_columns
from spark_kafka_source.producer.given_partitioner import (
    GivenPartitioner,
    Partitioner,
    SentObjects,
    given_partitioner,
)
from spark_kafka_source.producer.identity import Idempotent, Identity
from spark_kafka_source.producer.metrics import ProducerMetrics
from spark_kafka_source.producer.parcel import SendFuture
from spark_kafka_source.producer.partitioners import key_partitioner
from spark_kafka_source.producer.placing import Placing
from spark_kafka_source.producer.producer_config import config_from_arguments
from spark_kafka_source.producer.record import (
    GivenSerializer,
    Serializer,
    check_topic,
    checked_headers,
    checked_time,
    given_headers,
    record_size,
    serialize,
)
from spark_kafka_source.producer.sender import Sender
from spark_kafka_source.producer.sequences import PreparedTransaction
from spark_kafka_source.producer.topics import Topics
from spark_kafka_source.producer.transaction import (
    Beginning,
    Transaction,
)
from spark_kafka_source.records import HEADER_BYTES
from spark_kafka_source.records.freed_memory import keep_freed_memory
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)


# The time that waiting records get after an error, or at the end of the interpreter.
_LAST_WORDS_MS = 5_000


@used_where_made
class KafkaProducer:
    """Write records to topics, one by one or as Arrow columns.

        with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
            producer.send("events", key=b"k", value=b"v")
            producer.send_columns("events", table)

    The settings have Kafka's names, with underscores. Any thread may use the producer. The
    producer has its own thread, which sends. After a fork, the child needs a producer of its own:
    every call raises `ForkedError`, also those of futures without a result yet. Raises
    `ConfigurationError` for settings that cannot be used.

    `key_serializer` and `value_serializer` turn the key and the value of `send` into bytes. Each
    is a function of the object, of the topic and the object, or of the topic, the headers and the
    object; an object with such a method `serialize`; or a name of Kafka's own, as
    `StringSerializer`. The headers are a list, and the function may add to it.

    `partitioner` is a function of the topic, the key's bytes and the number of partitions; an
    object with a method `partition` of the topic, the key, its bytes, the value, its bytes and the
    topic's partitions; or a name, as the setting has it. It returns a partition, or None for any
    partition. Objects may have Kafka's methods `configure` and `close`, too.

    `metric_reporters` get the figures of `metrics`; see `MetricsReporter`.

    With `value_format` and `key_format`, and Spark's other options for typed values, `send` takes
    dicts, and `send_columns` takes columns of structs.
    """

    def __init__(
        self,
        *positional: Never,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | str | None = None,
        metric_reporters: Iterable[MetricsReporter] | None = None,
        token_provider: TokenProvider | None = None,
        **configuration: object,
    ) -> None:
        refuse_positional("KafkaProducer", positional)
        if isinstance(partitioner, str):
            configuration["partitioner"], partitioner = partitioner, None
        serializers = (
            argument_of(configuration, "key_serializer", key_serializer),
            argument_of(configuration, "value_serializer", value_serializer),
        )
        reporters_given = argument_of(configuration, METRIC_REPORTERS, metric_reporters)
        config = config_from_arguments(configuration, token_provider)
        with spelt(config.spelling):
            key, value = (
                GivenSerializer(name, serde(name, serializer, SERIALIZE, configuration))
                for name, serializer in serializers
            )
            chooser = given_partitioner(partitioner, configuration)
            reporters = given_reporters(*reporters_given, configuration, config.client)
        self._set_up(config, key, value, chooser, reporters)

    @classmethod
    def of(cls, config: ProducerConfig) -> "KafkaProducer":
        """Return a producer for a configuration that is already parsed."""
        producer = cls.__new__(cls)
        key, value = GivenSerializer("key_serializer"), GivenSerializer("value_serializer")
        producer._set_up(config, key, value)
        return producer

    def _set_up(
        self,
        config: ProducerConfig,
        key_serializer: GivenSerializer,
        value_serializer: GivenSerializer,
        partitioner: GivenPartitioner | None = None,
        reporters: Sequence[GivenReporter] = (),
    ) -> None:
        self._process = OwnProcess("producer")
        keep_freed_memory()
        self._config = config
        self._encoding = typed.TypedEncoding(config.typed) if config.typed.parts else None
        texts = config.typed.texts
        with spelt(config.spelling):
            self._serialize_key = serialize("key", key_serializer, self._encoding, texts)
            self._serialize_value = serialize("value", value_serializer, self._encoding, texts)
        self._accumulator = Accumulator(config)
        self._metrics = ProducerMetrics(self._accumulator.memory, config.sensors)
        client = KafkaClient(config.client, traffic=self._metrics.traffic)
        self._callers_client = client.sibling()
        clients = [self._callers_client]
        self._most_bytes = min(config.max_request_size, config.buffer_memory) - HEADER_BYTES
        self._last_told: OnDelivery | None = None
        serdes = key_serializer.serde, value_serializer.serde
        self._takes_bytes = not (any(serdes) or self._encoding or texts or partitioner)
        """Whether `send` takes bytes as they are, and no function chooses their partition."""
        self._topics = Topics(
            self._callers_client, config, self._accumulator.queued, self._accumulator.refuse_topic
        )
        self._accumulator.batch_ended = self._topics.batch_ended
        self._transaction: Transaction | None = None
        identity: Identity
        if config.transactional_id:
            clients.append(client.sibling())
            identity = self._transaction = Transaction(
                config, clients[-1], client, self._accumulator
            )
        else:
            identity = Idempotent(client) if config.enable_idempotence else Identity()
        self._placing = Placing(
            self._accumulator,
            self._topics,
            partitioner,
            key_partitioner(config) if partitioner is None else None,
            self._transaction,
            self._metrics,
        )
        self._accumulator.place = self._placing.place
        with spelt(config.spelling):
            self._sender = Sender(config, client, self._accumulator, identity, self._metrics)
        client_id = config.client.connection.client_id
        reporting = Reporting(reporters, "producer", client_id, self._metrics.measures)
        parts = (*clients, key_serializer, value_serializer, self._encoding, partitioner, reporting)
        closed = [part.close for part in parts if part is not None]
        # `weakref.finalize` also closes a producer that nobody closed.
        self._closed = partial(_close, self._sender, self._accumulator, closed)
        self._ending = weakref.finalize(self, _end, self._process, self._accumulator, self._closed)

    def __enter__(self) -> "KafkaProducer":
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Close the producer when all records are sent; after an error, within 5 seconds."""
        self.close(None if error_type is None else _LAST_WORDS_MS / 1000)

    # -- sending -----------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> SendFuture:
        """Send one record, and return at once. `result` of the returned future waits for it.

        `timestamp_ms` is in milliseconds since 1970; the default is now. The producer's thread
        calls `on_delivery`, a plain function, with the `RecordMetadata` or with the error.

        Waits up to `max.block.ms` for the topic's partitions and for room in `buffer.memory`.
        Raises `KafkaTimeoutError` after that; for room it is its subclass `BufferFullError`, and
        `UnknownPartitionError` if the topic still has no such `partition`. A callback does not
        wait: it gets `LocalError`, and `BufferFullError` at once. Raises
        `UnsendableRecordError` for a record that is too large or that does not turn into bytes.

        With `value_format`, the first record of a topic also waits for the schema registry. It
        raises `ConfigurationError` for a schema that the registry does not have, and
        `RegistryUnavailableError`.
        """
        if self._process.pid != ThisProcess.pid:
            self._process.check()
        if on_delivery is not self._last_told:  # A look at the function costs more than the rest.
            if on_delivery is not None:
                refuse_async("on_delivery", on_delivery, "function")
            self._last_told = on_delivery
        has_more = headers is not None or partition is not None or timestamp_ms is not None
        if self._takes_bytes and not has_more:
            try:
                future = self._send_bytes(topic, key, value, on_delivery)
            except TypeError:
                check_topic(topic)
                raise
            if future is not None:
                return future
        self._check_open()
        check_topic(topic)
        added = given_headers(topic, headers)
        key_bytes = self._serialize_key(topic, added, key)
        value_bytes = self._serialize_value(topic, added, value)
        row_headers = checked_headers(topic, added) if added else ()
        size = record_size(key_bytes, value_bytes, row_headers)
        if size > self._most_bytes:
            self._refuse_size(topic, size)
        now_ms = checked_time(topic, timestamp_ms)
        is_asked = self._placing.partitioner is not None
        sent = SentObjects(key, key_bytes, value, value_bytes) if is_asked else None
        chosen = self._placing.chosen(topic, partition, sent)
        row = key_bytes, value_bytes, row_headers, now_ms, size, chosen
        return self._accumulator.add(topic, row, on_delivery)

    def _send_bytes(
        self, topic: str, key: object, value: object, on_delivery: OnDelivery | None
    ) -> SendFuture | None:
        """Send a record of bytes that nothing refuses and that waits for nothing.

        Return None for any other. Most records are such, and need none of the care that others do.
        """
        if type(value) is not bytes or not (key is None or type(key) is bytes):
            return None
        size = record_size(key, value, ())
        if size > self._most_bytes:
            return None
        now_ms = time.time_ns() // 1_000_000
        row = key, value, (), now_ms, size, None
        return self._accumulator.add_at_once(topic, row, on_delivery)

    def sends_at_once(self, topic: str, partition: int | None = None) -> bool:
        """Whether `send` would wait for nothing: neither for metadata nor for room.

        With `value_format` it may wait for the schema registry, so the result is False.
        """
        if self._encoding is not None or not self._topics.knows(topic, partition):
            return False
        return self._accumulator.memory.free >= self._most_bytes + HEADER_BYTES

    def send_columns(
        self, topic: str | None, columns: pa.Table | pa.RecordBatch | HasArrowStream | HasArrowArray
    ) -> ColumnsFuture:
        """Send all rows of Arrow columns, without one Python object per record.

        `columns` may be a pyarrow table or record batch, or what has Arrow's stream or array
        interface: a DataFrame of Polars or pandas, or a relation of DuckDB. A stream is read to its
        end.

        The columns are `key` and `value` (string or binary), `headers` (a list of structs of `key`
        and `value`), `timestamp` (a timestamp, or int64 of milliseconds) and `partition` (a whole
        number). If `topic` is None, there is also a column `topic`. Each column may be missing or
        null. Other columns are ignored beside a column `value`.

        All rows are checked before the first one is sent. Raises `ColumnTypeError`,
        `UnknownColumnError` for a column such as `Value`, and `RowTooLargeError` and
        `UnencodableRowError`, which name rows. Waits for room as `send` does. If that wait raises,
        the earlier rows are still on their way.
        """
        with spelt(self._config.spelling):
            self._check_open()
            table = checked_columns(columns)
            if self._encoding is not None:
                table = self._encoding.table(topic, table)
            pieces = pieces_of(table, self._config.max_request_size, self._config.buffer_memory)
            return ColumnsFuture(self._placing.send(topic, pieces))

    def flush(self, timeout_seconds: float | None = None) -> None:
        """Send all records so far at once, and wait until each is written or has failed.

        Raises `KafkaTimeoutError` if that takes longer. The futures hold the errors of records.
        """
        if not self._accumulator.flush(deadline_after(timeout_seconds)):
            raise KafkaTimeoutError(f"not all records were sent within {timeout_seconds} s")

    def close(self, timeout_seconds: float | None = None) -> None:
        """Wait until all records are sent, at most so long, and fail the rest. Never raises.

        A callback that is still busy then is not waited for: what is left fails when it ends.
        Without `timeout_seconds` it may be busy for `delivery.timeout.ms` and 30 seconds more.

        An open transaction stays open: its timeout aborts it, or the next producer with its
        transactional id does.
        """
        self._ending.detach()
        self._closed(deadline_after(timeout_seconds))

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of a topic, in order. Waits and raises as `send` does.

        Each is a `TopicPartition` that has its leader and its replicas, too.
        """
        with spelt(self._config.spelling):
            self._accumulator.raise_if_refused()
            return list(self._topics.of(topic).info.partitions)

    def metrics(self) -> dict[str, float]:
        """Return counts and rates under Kafka's names; times are in milliseconds."""
        return read(self._metrics.measures)

    def client_instance_id(self, timeout_seconds: float | None = None) -> UUID:
        """Return the id by which brokers know the metrics of this producer (KIP-714).

        A broker gives the id once, and the producer keeps it. Waits up to `timeout_seconds`; the
        default is `max.block.ms`. Raises `LocalError` if `enable_metrics_push` is false,
        `UnsupportedVersionError` for brokers that take no metrics, and `KafkaTimeoutError`.
        """
        with spelt(self._config.spelling):
            self._accumulator.raise_if_refused()
            most_seconds = self._config.max_block_ms / 1000
            seconds = most_seconds if timeout_seconds is None else timeout_seconds
            return self._sender.client_instance_id(seconds)

    # -- transactions ------------------------------------------------------------------------------

    def init_transactions(self) -> None:
        """Take the `transactional.id`: fence the producer that had it, abort its open transaction.

        Call it once, before any other call. This method and the next four wait up to
        `max.block.ms` for brokers.
        """
        with self._transactions() as transaction:
            transaction.init()

    def begin_transaction(self) -> None:
        """Begin a transaction. It holds all records that are sent from now on."""
        with self._transactions() as transaction:
            transaction.begin()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: Member | None
    ) -> None:
        """Commit a consumer's positions with the transaction.

        `group_metadata` is the result of `KafkaConsumer.group_metadata`. With it, a member that
        has lost its partitions cannot commit (KIP-447). None stands for a member without a
        generation, and raises `TransactionStateError`.
        """
        with self._transactions() as transaction:
            transaction.send_offsets(offsets, group_metadata)

    def commit_transaction(self) -> None:
        """Wait for all records, and commit the transaction.

        Raises the error of a record that was not written: call `abort_transaction` next. After a
        `KafkaTimeoutError`, call `commit_transaction` again.
        """
        with self._transactions() as transaction:
            transaction.commit()

    def abort_transaction(self) -> None:
        """Abort the transaction: readers with `read_committed` never see its records."""
        with self._transactions() as transaction:
            transaction.abort()

    def begin_at(self, beginning: Beginning) -> None:
        """Begin a transaction with an id and epoch that the caller has, and ask no coordinator.

        The call replaces `init_transactions` and `begin_transaction`. `prepare_transaction` ends
        the transaction for this producer. If brokers refuse the epoch, the first rows fail. Then
        another `begin_at` may follow.
        """
        with self._transactions() as transaction:
            transaction.begin_at(beginning)

    def prepare_transaction(self) -> PreparedTransaction | None:
        """Wait for all records, and return the handle by which another process ends it.

        Returns None if nothing was sent. Raises the error of a record that was not written: call
        `abort_transaction` next.
        """
        with self._transactions() as transaction:
            return transaction.prepare()

    @contextmanager
    def _transactions(self) -> Iterator[Transaction]:
        with spelt(self._config.spelling):
            self._accumulator.raise_if_refused()
            if self._transaction is None:
                raise TransactionStateError("'kafka.transactional.id' is not set")
            yield self._transaction

    # -- rows --------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        self._accumulator.raise_if_refused()
        if self._transaction is not None:
            self._transaction.check_open()

    def _refuse_size(self, topic: str, size: int) -> Never:
        config, size = self._config, size + HEADER_BYTES
        most = min(config.max_request_size, config.buffer_memory)
        name = "max.request.size" if most == config.max_request_size else "buffer.memory"
        reason = f"it may take {size} bytes, and 'kafka.{name}' is {most}"
        with spelt(config.spelling):
            raise UnsendableRecordError(topic, "size", reason)


def _close(
    sender: Sender,
    accumulator: Accumulator,
    others: Iterable[Callable[[], object]],
    deadline: Deadline | None,
) -> None:
    accumulator.refuse(ClosedError("the producer is closed"))
    sender.close(deadline)
    for close in others:
        try:
            close()
        except Exception:  # A user's serializer, after all records are sent.
            logger.exception("A part of the producer could not be closed")


def _end(process: OwnProcess, accumulator: Accumulator, close: Callable[[Deadline], None]) -> None:
    """Close a producer that nobody has closed. A fork's child leaves it to the parent."""
    if not process.is_here:
        return
    left = accumulator.left()
    close(Deadline.after_ms(_LAST_WORDS_MS))
    if left:
        text = "A producer was not closed. Batches left at its end: %s, with %s s to send them"
        logger.warning(text, left, _LAST_WORDS_MS // 1000)
