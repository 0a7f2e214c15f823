"""The timeout of transactions follows from the user's option and from the brokers' limits."""

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.exactly_once import chosen_timeout_ms
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import MemoryBroker
from tests.exactly_once.query import client_of

USUAL_MS = 900_000
MAX, RETENTION = "transaction.max.timeout.ms", "offsets.retention.minutes"
WEEK_MS = 604_800_000


@pytest.mark.kafka
def test_brokers_that_allow_25_days(second_generation: LocalKafka) -> None:
    """Readers would wait that long for an abandoned query. Decisions are gone after a week."""
    with client_of(second_generation.bootstrap_servers) as client:
        assert chosen_timeout_ms(client, None) == USUAL_MS
        assert chosen_timeout_ms(client, WEEK_MS) == WEEK_MS
        with pytest.raises(ConfigurationError, match="forget decisions after 604800000 ms"):
            chosen_timeout_ms(client, WEEK_MS + 1)


@pytest.mark.parametrize(
    ("limits", "chosen_ms"),
    [
        ({}, USUAL_MS),
        ({MAX: "1000"}, 1_000),
        ({MAX: "2147483647", RETENTION: "10080"}, USUAL_MS),
        ({MAX: "2147483647", RETENTION: "1"}, 60_000),
        ({RETENTION: "1"}, 60_000),
    ],
    ids=str,
)
def test_the_default_is_within_all_limits(limits: dict[str, str], chosen_ms: int) -> None:
    with MemoryBroker() as broker:
        broker.cluster.broker_settings = limits
        with client_of(str(broker.address())) as client:
            assert chosen_timeout_ms(client, None) == chosen_ms
            assert chosen_timeout_ms(client, 500) == 500


def test_the_first_limit_that_is_passed_is_named() -> None:
    with MemoryBroker() as broker:
        broker.cluster.broker_settings = {MAX: "900000", RETENTION: "1"}
        with client_of(str(broker.address())) as client:
            with pytest.raises(ConfigurationError, match=r"transaction\.max\.timeout\.ms"):
                chosen_timeout_ms(client, 900_001)
            with pytest.raises(ConfigurationError, match=r"offsets\.retention\.minutes"):
                chosen_timeout_ms(client, 60_001)
