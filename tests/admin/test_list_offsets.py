"""Offsets by an `OffsetSpec`. `tests/tiered_storage` asks a broker that has tiered storage."""

import re

import pytest

from spark_kafka_source import KafkaAdmin, OffsetSpec, TopicPartition
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    LocalError,
    TopicNotFoundError,
    UnsupportedVersionError,
)
from spark_kafka_source.protocol.declaration import Versions
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.records.encode import Record
from spark_kafka_source.testing.memory import MemoryBroker
from tests.admin.conftest import T0, T1, U0

TIME_MS = 1_700_000_000_000


def offset(admin: KafkaAdmin, spec: OffsetSpec) -> int | None:
    found = admin.list_offsets({T1: spec})[T1]
    return None if found is None else found.offset


def test_each_partition_has_the_offset_of_its_own_spec(admin: KafkaAdmin) -> None:
    found = admin.list_offsets(
        {T0: OffsetSpec.latest(), T1: OffsetSpec.earliest(), U0: OffsetSpec.latest()}
    )
    assert {each: at and at.offset for each, at in found.items()} == {T0: 3, T1: 0, U0: 1}


def test_offsets_of_times(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    times_ms = (TIME_MS, TIME_MS + 9, TIME_MS + 5)
    broker.cluster.topics["t"].logs[1].append(*[Record(timestamp_ms=ms) for ms in times_ms])
    assert offset(admin, OffsetSpec.max_timestamp()) == 6
    assert admin.list_offsets({T1: OffsetSpec.for_timestamp(TIME_MS + 1)}) == {
        T1: (6, 0, TIME_MS + 9)
    }
    assert offset(admin, OffsetSpec.for_timestamp("9000-01-01T00:00:00Z")) is None


def test_offsets_of_tiered_storage_without_it(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.cluster.topics["t"].logs[1].log_start_offset = 2
    assert offset(admin, OffsetSpec.earliest_local()) == 2
    assert offset(admin, OffsetSpec.latest_tiered()) is None
    assert offset(admin, OffsetSpec.earliest_pending_upload()) is None


def test_an_isolation_level_from_the_call_or_else_from_the_client(broker: MemoryBroker) -> None:
    broker.cluster.topics["t"].logs[0].fixed_last_stable_offset = 2
    asked = {T0: OffsetSpec.latest()}
    servers = str(broker.address())
    with KafkaAdmin(bootstrap_servers=servers, isolation_level="read_committed") as admin:
        of_client = admin.list_offsets(asked)[T0]
        of_call = admin.list_offsets(asked, isolation_level="read_uncommitted")[T0]
    assert of_client is not None and of_call is not None
    assert (of_client.offset, of_call.offset) == (2, 3)


@pytest.mark.parametrize(
    ("spec", "version", "what"),
    [
        (OffsetSpec.max_timestamp(), 7, "greatest timestamp .*Kafka 3\\.0"),
        (OffsetSpec.earliest_local(), 8, "earliest local .*Kafka 3\\.5"),
        (OffsetSpec.latest_tiered(), 9, "latest tiered .*Kafka 3\\.9"),
        (OffsetSpec.earliest_pending_upload(), 11, "pending upload .*Kafka 4\\.2"),
    ],
)
def test_a_broker_that_is_too_old_is_named_and_not_asked(
    broker: MemoryBroker, admin: KafkaAdmin, spec: OffsetSpec, version: int, what: str
) -> None:
    """An older broker would take the timestamp for a very early time, and answer with the start."""
    broker.cluster.versions[ListOffsetsRequest.KEY] = Versions(1, version - 1)
    leader = re.escape(str(broker.address(1)))
    with pytest.raises(UnsupportedVersionError, match=f"{leader}: ListOffsets: .*{what}") as caught:
        admin.list_offsets({T1: spec})
    assert f"needs version {version}" in str(caught.value)
    assert f"up to {version - 1}" in str(caught.value)
    assert offset(admin, OffsetSpec.latest()) == 5


def test_what_is_not_there(admin: KafkaAdmin) -> None:
    with pytest.raises(TopicNotFoundError, match="nope"):
        admin.list_offsets({TopicPartition("nope", 0): OffsetSpec.latest()})
    with pytest.raises(BrokerError, match="topic 't' has 0 to 1"):
        admin.list_offsets({TopicPartition("t", 2): OffsetSpec.latest()})
    assert admin.list_offsets({}) == {}


def test_wrong_arguments(admin: KafkaAdmin) -> None:
    given: list[tuple[object, str]] = [
        ([T0], "Give a dict"),
        ({T0: "latest"}, "Give an OffsetSpec"),
        ({T0: -2}, "Give an OffsetSpec"),
    ]
    for specs, expected in given:
        with pytest.raises(ConfigurationError, match=expected):
            admin.list_offsets(specs)  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="topic and number"):
        admin.list_offsets({"t": OffsetSpec.latest()})  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match="read_uncommitted, read_committed"):
        admin.list_offsets({T0: OffsetSpec.latest()}, isolation_level="serializable")
    for time in (-1, "2026-05-04T13:00:00", 1_700_000_000):
        with pytest.raises(ConfigurationError, match="timestamp_ms"):
            OffsetSpec.for_timestamp(time)
