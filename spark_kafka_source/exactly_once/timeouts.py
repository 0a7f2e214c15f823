"""The timeout of transactions: the user's, or else the longest that the brokers allow."""

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.client.configs import number_set_at
from spark_kafka_source.errors import BrokerError, ConfigurationError, KafkaError, error_named
from spark_kafka_source.net import Deadline

TIMEOUT_OPTION = "kafka.transaction.timeout.ms"

_MOST = "transaction.max.timeout.ms"
_USUAL_MOST_MS = 900_000
"""The default of Kafka's brokers."""
_INVALID_TIMEOUT = error_named("INVALID_TRANSACTION_TIMEOUT")


def largest_timeout_ms(client: KafkaClient) -> int | None:
    """Return a broker's maximum in milliseconds; None if the user may not ask for it.

    The request needs DESCRIBE_CONFIGS on the cluster.
    """

    def attempt(deadline: Deadline) -> int | None:
        client.topics([], deadline)
        broker = next(iter(client.cluster.brokers.values()))
        return number_set_at(client, broker, _MOST, deadline)

    try:
        return client.retrying("DescribeConfigs", attempt)
    except BrokerError:
        return None


def chosen_timeout_ms(client: KafkaClient, given_ms: int | None) -> int:
    """Return the timeout of transactions in milliseconds: the given one, else the longest.

    Raises `ConfigurationError` for one that is longer than the broker's maximum.
    """
    largest_ms = largest_timeout_ms(client)
    if given_ms is None:
        return _USUAL_MOST_MS if largest_ms is None else largest_ms
    if largest_ms is not None and given_ms > largest_ms:
        raise _too_long(given_ms, str(largest_ms))
    return given_ms


def refused_timeout(error: KafkaError, timeout_ms: int) -> KafkaError:
    """Return a broker's error as the error about the timeout, if it is one."""
    if isinstance(error, BrokerError) and error.error == _INVALID_TIMEOUT:
        return _too_long(timeout_ms, "less, which this user may not ask for (DESCRIBE_CONFIGS)")
    return error


def _too_long(timeout_ms: int, most: str) -> ConfigurationError:
    expected = f"The brokers' '{_MOST}' is {most}: give no more, or raise that"
    return ConfigurationError(TIMEOUT_OPTION, "found {}", expected, timeout_ms)
