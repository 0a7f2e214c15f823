"""Kafka's fetch configuration by `kafka.*` options."""

import pytest

from spark_kafka_source.client import CLIENT_OPTIONS
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.options.declaration import Settings, options_of
from spark_kafka_source.records import IsolationLevel


def config(**values: str) -> FetchConfig:
    named = {"kafka." + name.replace("_", "."): value for name, value in values.items()}
    return FetchConfig.from_settings(Settings(named))


def test_defaults_are_those_of_kafka() -> None:
    assert config() == FetchConfig(
        fetch_min_bytes=1,
        fetch_max_wait_ms=500,
        fetch_max_bytes=52_428_800,
        max_partition_fetch_bytes=1_048_576,
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        check_crcs=True,
        client_rack="",
    )


def test_every_setting_is_read() -> None:
    found = config(
        fetch_min_bytes="2",
        fetch_max_wait_ms="3",
        fetch_max_bytes="4",
        max_partition_fetch_bytes="5",
        isolation_level="read_committed",
        check_crcs="FALSE",
        client_rack="zone-a",
    )
    assert found == FetchConfig(2, 3, 4, 5, IsolationLevel.READ_COMMITTED, False, "zone-a", True)
    assert len(options_of(FetchConfig)) == 7
    assert not options_of(FetchConfig).keys() & CLIENT_OPTIONS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fetch_max_bytes", "0"),
        ("fetch_min_bytes", "-1"),
        ("max_partition_fetch_bytes", "1MB"),
        ("isolation_level", "serializable"),
        ("check_crcs", "yes"),
    ],
)
def test_a_value_of_no_use_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match="kafka." + name.replace("_", ".")):
        config(**{name: value})
