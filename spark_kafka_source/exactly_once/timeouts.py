"""The timeout of transactions: the user's, or else 15 minutes, if brokers allow as much."""

from typing import NamedTuple

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.client.configs import numbers_set_at
from spark_kafka_source.errors import BrokerError, ConfigurationError, KafkaError, error_named
from spark_kafka_source.net import Deadline

TIMEOUT_OPTION = "kafka.transaction.timeout.ms"

_MOST = "transaction.max.timeout.ms"
_RETENTION = "offsets.retention.minutes"
# Kafka's default of the brokers' maximum. Readers wait as long for a query that was abandoned, so
# this is the most without a user's word, whatever brokers allow.
_USUAL_MOST_MS = 900_000
_MINUTE_MS = 60_000
_INVALID_TIMEOUT = error_named("INVALID_TRANSACTION_TIMEOUT")


class Limits(NamedTuple):
    """A broker's limits, in milliseconds; None for one that the user may not ask for."""

    largest_ms: int | None
    """The longest timeout of a transaction."""
    kept_ms: int | None
    """How long decisions are kept. Rows of a transaction that is open for longer would be doubled:
    after a restart nobody would know that they are decided."""


def limits_of(client: KafkaClient) -> Limits:
    """Return a broker's limits. The request needs DESCRIBE_CONFIGS on the cluster."""

    async def attempt(deadline: Deadline) -> Limits:
        await client.topics([], deadline)
        broker = next(iter(client.cluster.brokers.values()))
        numbers = await numbers_set_at(client, broker, (_MOST, _RETENTION), deadline)
        kept_ms = numbers[_RETENTION] * _MINUTE_MS if _RETENTION in numbers else None
        return Limits(numbers.get(_MOST), kept_ms)

    try:
        return client.run(client.retrying("DescribeConfigs", attempt))
    except BrokerError:
        return Limits(None, None)


def chosen_timeout_ms(client: KafkaClient, given_ms: int | None) -> int:
    """Return the timeout of transactions in milliseconds: the given one, else at most 15 minutes.

    Raises `ConfigurationError` for one that is longer than the broker's limits.
    """
    limits = limits_of(client)
    if given_ms is None:
        return min(limit_ms for limit_ms in (_USUAL_MOST_MS, *limits) if limit_ms is not None)
    if limits.largest_ms is not None and given_ms > limits.largest_ms:
        raise _too_long(given_ms, str(limits.largest_ms))
    if limits.kept_ms is not None and given_ms > limits.kept_ms:
        expected = (
            f"The brokers forget decisions after {limits.kept_ms} ms ('{_RETENTION}'): give no "
            "more, or rows may be written twice; or raise that"
        )
        raise ConfigurationError(TIMEOUT_OPTION, "found {}", expected, given_ms)
    return given_ms


def refused_timeout(error: KafkaError, timeout_ms: int) -> KafkaError:
    """Return a broker's error as the error about the timeout, if it is one."""
    if isinstance(error, BrokerError) and error.error == _INVALID_TIMEOUT:
        return _too_long(timeout_ms, "less, which this user may not ask for (DESCRIBE_CONFIGS)")
    return error


def _too_long(timeout_ms: int, most: str) -> ConfigurationError:
    expected = f"The brokers' '{_MOST}' is {most}: give no more, or raise that"
    return ConfigurationError(TIMEOUT_OPTION, "found {}", expected, timeout_ms)
