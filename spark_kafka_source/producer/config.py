"""How records are written: Kafka's producer configuration, from `kafka.*` options."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from types import MappingProxyType

from spark_kafka_source.client import CLIENT_OPTIONS, CLIENT_RACK, ClientConfig
from spark_kafka_source.client.sensor import SensorConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import ConnectionSettings, TokenProvider
from spark_kafka_source.options.declaration import (
    Option,
    Options,
    Settings,
    held,
    named,
    option,
    options_of,
)
from spark_kafka_source.options.kinds import (
    INT32_MAX,
    Kind,
    boolean,
    choice,
    int32,
    int64,
    string,
)
from spark_kafka_source.records import Codec, Compression
from spark_kafka_source.spelling import Spelling, as_written, current_spelling
from spark_kafka_source.telemetry import NO_PUSH, TelemetryConfig
from spark_kafka_source.typed import TypedWriteConfig

logger = logger_of(__name__)

MOST_IN_FLIGHT = 5
"""The number of batches of an idempotent producer that a broker remembers, to know duplicates."""

_ACKS = "kafka.acks"
_BATCH_SIZE = "kafka.batch.size"
_DELIVERY = "kafka.delivery.timeout.ms"
_IDEMPOTENCE = "kafka.enable.idempotence"
_IGNORE_KEYS = "kafka.partitioner.ignore.keys"
_IN_FLIGHT = "kafka.max.in.flight.requests.per.connection"
_LINGER = "kafka.linger.ms"
_PARTITIONER = "kafka.partitioner"
_PARTITIONER_CLASS = "kafka.partitioner.class"
_REQUEST_TIMEOUT = "kafka.request.timeout.ms"
_RETRIES = "kafka.retries"
_TRANSACTIONAL_ID = "kafka.transactional.id"


class Acks(IntEnum):
    """The replicas that must have a batch before it counts as written; the value on the wire."""

    ALL = -1
    LEADER = 1
    NONE = 0

    def __str__(self) -> str:
        return "all" if self is Acks.ALL else str(self.value)


class Partitioner(StrEnum):
    """The name of the hash that maps a key to a partition, Java's or one of librdkafka's.

    Or `round_robin`: the partitions in turn, whatever the key is.
    """

    MURMUR2 = "murmur2"
    MURMUR2_RANDOM = "murmur2_random"
    CONSISTENT_RANDOM = "consistent_random"
    ROUND_ROBIN = "round_robin"


SETTINGS_BY_CLASS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "org.apache.kafka.clients.producer.RoundRobinPartitioner": {
            _PARTITIONER: Partitioner.ROUND_ROBIN
        },
        "org.apache.kafka.clients.producer.UniformStickyPartitioner": {_IGNORE_KEYS: "true"},
        "org.apache.kafka.clients.producer.internals.DefaultPartitioner": {_IGNORE_KEYS: "false"},
    }
)
"""Kafka's own classes that `partitioner.class` may name, each with the settings that it stands
for."""


def _ms(default: int) -> Kind[int]:
    """Return the kind of a time. Java takes 64 bits; the most of 32 is as good as for ever."""
    kind = int64(default)
    return replace(kind, read=lambda name, text: min(kind.read(name, text), INT32_MAX))


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """Names and defaults of https://kafka.apache.org/documentation/#producerconfigs, except two.

    `batch_size` is 1 MiB; Java's is 16 KiB. Java reserves a whole batch's memory for each
    partition. Here a batch takes only the memory of its records, and with small batches columns
    cost half as much again. `partitioner` is librdkafka's setting; its default is what Java does.

    Raises `ConfigurationError` for values that contradict each other.
    """

    client: ClientConfig
    typed: TypedWriteConfig = field(default_factory=TypedWriteConfig, kw_only=True)
    """How the producer encodes typed keys and values."""
    sensors: SensorConfig = field(default_factory=SensorConfig, kw_only=True)
    """How long the values of its metrics count."""
    telemetry: TelemetryConfig = field(default=NO_PUSH, kw_only=True)
    """Whether it pushes its metrics."""
    acks: Acks = option(
        "kafka.acks",
        choice(Acks.ALL),
        "how many replicas must have a batch before it counts as written",
    )
    batch_size: int = option(
        "kafka.batch.size",
        int32(1024 * 1024, minimum=1),
        "the size in bytes at which a batch is sent before `kafka.linger.ms` is over",
    )
    linger_ms: int = option(
        "kafka.linger.ms", _ms(5), "how long a batch that is not full waits for more records"
    )
    buffer_memory: int = option(
        "kafka.buffer.memory",
        int64(32 * 1024 * 1024, minimum=1),
        "how many bytes of records may wait to be written; sending waits when it is full",
    )
    max_block_ms: int = option(
        "kafka.max.block.ms",
        _ms(60_000),
        "how long sending waits for room and for the topic's partitions",
    )
    max_request_size: int = option(
        "kafka.max.request.size",
        int32(1024 * 1024, minimum=1),
        "the largest request in bytes; a larger record is refused",
    )
    max_in_flight_requests_per_connection: int = option(
        "kafka.max.in.flight.requests.per.connection",
        int32(MOST_IN_FLIGHT, minimum=1),
        "how many requests to a broker may wait for an answer",
    )
    enable_idempotence: bool = option(
        "kafka.enable.idempotence",
        boolean(True),
        "whether a record that is sent again after a fault is still written only once",
    )
    retries: int = option(
        "kafka.retries", int32(INT32_MAX), "how many times a batch is sent again at most"
    )
    delivery_timeout_ms: int = option(
        "kafka.delivery.timeout.ms",
        int32(120_000),
        "how long after `send` a record that is not written fails",
    )
    compression_type: Codec = option("kafka.compression.type", choice(Codec.NONE))
    compression_gzip_level: int = option("kafka.compression.gzip.level", int32(-1, minimum=-1))
    compression_lz4_level: int = option("kafka.compression.lz4.level", int32(9))
    compression_zstd_level: int = option("kafka.compression.zstd.level", int32(3, minimum=-131_072))
    partitioner: Partitioner = option(
        "kafka.partitioner",
        choice(Partitioner.MURMUR2),
        "the hash that maps a key to a partition: Java's, or one of librdkafka's; or"
        " `round_robin`: the partitions in turn, without regard to keys",
    )
    partitioner_ignore_keys: bool = option(
        "kafka.partitioner.ignore.keys",
        boolean(False),
        "whether keys are ignored, and records go where there is room",
    )
    partitioner_adaptive_partitioning_enable: bool = option(
        "kafka.partitioner.adaptive.partitioning.enable",
        boolean(True),
        "whether partitions of slower brokers get fewer of the records without a key",
    )
    client_rack: str = held(CLIENT_RACK)
    partitioner_rack_aware: bool = option(
        "kafka.partitioner.rack.aware",
        boolean(False),
        "whether records without a key go to partitions whose leader is in `client.rack`,"
        " as long as there are any (KIP-1123)",
    )
    transactional_id: str = option(
        "kafka.transactional.id",
        string(),
        "the name under which transactions begin; a later producer with it fences this",
    )
    transaction_timeout_ms: int = option(
        "kafka.transaction.timeout.ms",
        int32(60_000, minimum=1),
        "how long a transaction may be open before the broker aborts it",
    )
    spelling: Spelling = field(
        default_factory=lambda: dict(current_spelling()), compare=False, repr=False
    )
    """How the user writes the names of settings; errors use these names."""

    def __post_init__(self) -> None:
        for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD):
            Compression(codec, self._level(codec))
        if self.enable_idempotence:
            _check_idempotence(self)
        elif self.transactional_id:
            found = f"is given, and '{_IDEMPOTENCE}' is 'false'"
            raise ConfigurationError(_TRANSACTIONAL_ID, found, _WITH_IDEMPOTENCE)
        least_ms = self.linger_ms + self.client.connection.request_timeout_ms
        if self.delivery_timeout_ms < min(least_ms, INT32_MAX):
            found = f"found {{}}, less than '{_LINGER}' and '{_REQUEST_TIMEOUT}' together, {{}}"
            expected = "Give at least as much"
            raise ConfigurationError(_DELIVERY, found, expected, self.delivery_timeout_ms, least_ms)

    @classmethod
    def from_settings(
        cls, settings: Settings, token_provider: TokenProvider | None = None
    ) -> "ProducerConfig":
        """Read the settings as Java's producer does.

        If idempotence is not set, it is turned off where `acks` or `retries` exclude it. If the
        delivery timeout is not set, it grows to hold longer `linger.ms` and `request.timeout.ms`.
        Raises `ConfigurationError` for given values that contradict each other.
        """
        client = ClientConfig.from_settings(settings, token_provider)
        return _completed(settings, client.connection).read(cls, client=client)

    @property
    def compression(self) -> Compression:
        """The codec with its level."""
        return Compression(self.compression_type, self._level(self.compression_type))

    @property
    def has_sticky_partition(self) -> bool:
        """Whether records without a partition stay on one partition for a while, as in Java.

        That is KIP-794. Otherwise each record goes to any partition, as with librdkafka's
        `_random`, or to the next one.
        """
        if self.partitioner is Partitioner.ROUND_ROBIN:
            return False
        return self.partitioner_ignore_keys or self.partitioner is Partitioner.MURMUR2

    def _level(self, codec: Codec) -> int | None:
        return {
            Codec.GZIP: self.compression_gzip_level,
            Codec.LZ4: self.compression_lz4_level,
            Codec.ZSTD: self.compression_zstd_level,
        }.get(codec)


_CLASS_OPTION = Option(
    "kafka.partitioner.class",
    string(takes=", ".join(f"`{each}`" for each in SETTINGS_BY_CLASS)),
    "replaces `kafka.partitioner.ignore.keys` by the name of one of Java's partitioners",
)
_OPTIONS = {**options_of(ProducerConfig), **named(_CLASS_OPTION)}
PRODUCER_OPTIONS: Options = {**CLIENT_OPTIONS, **_OPTIONS}
"""The options that `ProducerConfig.from_settings` reads."""

_WITH_IDEMPOTENCE = (
    f"Transactions need '{_IDEMPOTENCE}', with '{_ACKS}' at 'all' and '{_RETRIES}' above 0"
)


def _check_idempotence(config: ProducerConfig) -> None:
    """Refuse settings with which a broker cannot tell duplicates.

    It knows duplicates only among the batches in flight, and only if it answers.
    """
    acks, retries = config.acks, config.retries
    in_flight = config.max_in_flight_requests_per_connection
    for name, value, is_right, expected in (
        (_ACKS, acks, acks is Acks.ALL, "Give 'all'"),
        (_RETRIES, retries, retries > 0, "Give 1 or more"),
        (_IN_FLIGHT, in_flight, in_flight <= MOST_IN_FLIGHT, f"Give at most {MOST_IN_FLIGHT}"),
    ):
        if not is_right:
            conflict = f"found {{}}, and '{_IDEMPOTENCE}' is 'true'"
            advice = f"{expected}, or set that to 'false'"
            raise ConfigurationError(name, conflict, advice, str(value))


def _completed(settings: Settings, connection: ConnectionSettings) -> Settings:
    """Add the settings that follow from others, and write each value in one way."""
    values = dict(settings.values)
    if values.get(_ACKS, "").strip() == str(Acks.ALL.value):
        values[_ACKS] = str(Acks.ALL)
    if values.get(_BATCH_SIZE, "").strip() == "0":  # As in Java: one record per batch.
        values[_BATCH_SIZE] = "1"
    if _PARTITIONER_CLASS in values:
        values |= _settings_of_class(values)
    if _TRANSACTIONAL_ID in values and not values[_TRANSACTIONAL_ID]:
        raise ConfigurationError(_TRANSACTIONAL_ID, "is empty", "Give a name, or leave it out")
    found = Settings(values)
    if _IDEMPOTENCE not in values and (why := _against_idempotence(found)):
        values[_IDEMPOTENCE] = "false"
        logger.info("%s", as_written(f"'{_IDEMPOTENCE}' is off, as {why}"))
    if _DELIVERY not in values:
        values[_DELIVERY] = str(_delivery_timeout_ms(found, connection))
    return found


def _settings_of_class(values: Mapping[str, str]) -> Mapping[str, str]:
    name = values[_PARTITIONER_CLASS].strip()
    if name not in SETTINGS_BY_CLASS:
        known = ", ".join(Partitioner)
        expected = f"Java classes cannot be run here: set '{_PARTITIONER}' to one of {known}"
        raise ConfigurationError(_PARTITIONER_CLASS, "found {}", expected, name)
    if _PARTITIONER in values:
        found = f"is given, and '{_PARTITIONER}', too"
        raise ConfigurationError(_PARTITIONER_CLASS, found, "Give one of them")
    return SETTINGS_BY_CLASS[name]


def _against_idempotence(settings: Settings) -> str:
    """Return why the user's settings exclude idempotence; "" if they do not."""
    acks = _OPTIONS[_ACKS].of(settings)
    in_flight = _OPTIONS[_IN_FLIGHT].of(settings)
    if in_flight > MOST_IN_FLIGHT:  # Java raises here since 4.0.
        return ""
    if acks is not Acks.ALL:
        return f"'{_ACKS}' is '{acks}'"
    return f"'{_RETRIES}' is 0" if not _OPTIONS[_RETRIES].of(settings) else ""


def _delivery_timeout_ms(settings: Settings, connection: ConnectionSettings) -> int:
    """Return the default: at least as long as one attempt takes."""
    usual_ms: int = _OPTIONS[_DELIVERY].of(Settings({}))
    linger_ms: int = _OPTIONS[_LINGER].of(settings)
    least_ms = min(linger_ms + connection.request_timeout_ms, INT32_MAX)
    if least_ms > usual_ms:
        why = f"'{_LINGER}' and '{_REQUEST_TIMEOUT}' together"
        logger.warning("%s", as_written(f"'{_DELIVERY}' is {least_ms}, to be no less than {why}"))
    return max(usual_ms, least_ms)
