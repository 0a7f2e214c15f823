"""The producer's configuration by `kafka.*` options, with the same conditions as in Java."""

import logging
import pickle
from collections.abc import Mapping

import pytest

from spark_kafka_source.client import CLIENT_OPTIONS
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Settings, options_of
from spark_kafka_source.options.kinds import INT32_MAX, INT64_MAX
from spark_kafka_source.producer.config import (
    PRODUCER_OPTIONS,
    SETTINGS_BY_CLASS,
    Acks,
    Partitioner,
    ProducerConfig,
)
from spark_kafka_source.producer.partitioners import (
    CONSISTENT_RANDOM,
    MURMUR2,
    PARTITIONERS,
    key_partitioner,
)
from spark_kafka_source.records import Codec, Compression

IN_FLIGHT = "max_in_flight_requests_per_connection"
ROUND_ROBIN = "org.apache.kafka.clients.producer.RoundRobinPartitioner"


def config(**values: str) -> ProducerConfig:
    named = {"kafka." + name.replace("_", "."): value for name, value in values.items()}
    return ProducerConfig.from_settings(Settings({"kafka.bootstrap.servers": "a:1", **named}))


def refusal(**values: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        config(**values)
    return caught.value


def test_defaults_are_kafkas_but_for_the_size_of_a_batch() -> None:
    found = config()
    assert found == ProducerConfig(
        client=found.client,
        acks=Acks.ALL,
        batch_size=1_048_576,
        linger_ms=5,
        buffer_memory=33_554_432,
        max_block_ms=60_000,
        max_request_size=1_048_576,
        max_in_flight_requests_per_connection=5,
        enable_idempotence=True,
        retries=2_147_483_647,
        delivery_timeout_ms=120_000,
        compression_type=Codec.NONE,
        compression_gzip_level=-1,
        compression_lz4_level=9,
        compression_zstd_level=3,
        partitioner=Partitioner.MURMUR2,
        partitioner_ignore_keys=False,
        partitioner_adaptive_partitioning_enable=True,
        client_rack="",
        partitioner_rack_aware=False,
        transactional_id="",
        transaction_timeout_ms=60_000,
    )


def test_every_setting_is_read() -> None:
    given = {
        "acks": "1",
        "batch_size": "2",
        "linger_ms": "3",
        "buffer_memory": str(2**40),
        "max_block_ms": "4",
        "max_request_size": "5",
        IN_FLIGHT: "6",
        "enable_idempotence": "false",
        "retries": "7",
        "delivery_timeout_ms": "30003",
        "compression_type": "zstd",
        "compression_gzip_level": "8",
        "compression_lz4_level": "10",
        "compression_zstd_level": "-11",
        "partitioner": "consistent_random",
        "partitioner_ignore_keys": "true",
        "partitioner_adaptive_partitioning_enable": "false",
        "client_rack": "here",
        "partitioner_rack_aware": "true",
        "transactional_id": "t",
        "transaction_timeout_ms": "12",
    }
    assert {f"kafka.{name.replace('_', '.')}" for name in given} == options_of(
        ProducerConfig
    ).keys()
    assert not options_of(ProducerConfig).keys() & CLIENT_OPTIONS
    del given["transactional_id"]
    found = config(**given)
    read = [getattr(found, name) for name in given]
    assert read == [
        *(Acks.LEADER, 2, 3, 2**40, 4, 5, 6, False, 7, 30_003, Codec.ZSTD, 8, 10, -11),
        *(Partitioner.CONSISTENT_RANDOM, True, False, "here", True, 12),
    ]
    assert config(transactional_id="t").transactional_id == "t"


@pytest.mark.parametrize(
    ("text", "acks"),
    [
        ("all", Acks.ALL),
        ("ALL", Acks.ALL),
        (" -1 ", Acks.ALL),
        ("1", Acks.LEADER),
        ("0", Acks.NONE),
    ],
)
def test_acks_are_spelt_as_kafka_spells_them(text: str, acks: Acks) -> None:
    assert config(acks=text).acks is acks


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", "2"),
        ("acks", "leader"),
        ("batch_size", "-1"),
        ("buffer_memory", "0"),
        ("max_request_size", "1MB"),
        (IN_FLIGHT, "0"),
        ("retries", str(2**31)),
        ("linger_ms", "-1"),
        ("compression_type", "brotli"),
        ("partitioner", "fnv1a"),
        ("partitioner_class", "com.example.Mine"),
        ("transactional_id", ""),
    ],
)
def test_a_value_of_no_use_is_refused_by_name(name: str, value: str) -> None:
    assert refusal(**{name: value}).option == f"kafka.{name.replace('_', '.')}"


# -- combinations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [("acks", "1", "'all'"), ("acks", "0", "'all'"), ("retries", "0", "1")],
)
def test_idempotence_gives_way_unless_it_was_asked_for(
    name: str, value: str, wanted: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert not config(**{name: value}).enable_idempotence
    (message,) = caplog.messages
    assert message.startswith("'kafka.enable.idempotence' is off, as ") and name in message
    error = refusal(**{name: value, "enable_idempotence": "true"})
    assert error.option == f"kafka.{name}"
    assert f"found '{value}', and 'kafka.enable.idempotence' is 'true'" in str(error)
    assert f"Give {wanted}" in error.expected


def test_idempotence_is_not_given_up_for_more_requests_in_flight() -> None:
    """Java does the same from 4.0 on."""
    assert refusal(**{IN_FLIGHT: "6"}).option == "kafka.max.in.flight.requests.per.connection"
    assert config(**{IN_FLIGHT: "6", "enable_idempotence": "false"})
    assert config(**{IN_FLIGHT: "5"}).enable_idempotence


@pytest.mark.parametrize(
    "without", [{"acks": "1"}, {"retries": "0"}, {"enable_idempotence": "false"}]
)
def test_transactions_need_idempotence(without: dict[str, str]) -> None:
    error = refusal(transactional_id="t", **without)
    assert error.option == "kafka.transactional.id"
    assert "'kafka.enable.idempotence' is 'false'" in error.found


def test_a_delivery_timeout_is_no_shorter_than_one_attempt(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert config(delivery_timeout_ms="30005").delivery_timeout_ms == 30_005
    error = refusal(delivery_timeout_ms="30004")
    assert error.option == "kafka.delivery.timeout.ms"
    assert "found 30004" in error.found and "30005" in error.found
    assert "'kafka.linger.ms' and 'kafka.request.timeout.ms'" in error.found
    assert not caplog.messages


def test_one_that_is_not_given_grows_with_the_attempt(caplog: pytest.LogCaptureFixture) -> None:
    assert config(request_timeout_ms="200000").delivery_timeout_ms == 200_005
    (message,) = caplog.messages
    assert message.startswith("'kafka.delivery.timeout.ms' is 200005")
    assert config(linger_ms=str(INT64_MAX)).delivery_timeout_ms == INT32_MAX


def test_what_is_for_ever_in_java_is_taken() -> None:
    found = config(max_block_ms=str(INT64_MAX), linger_ms=str(INT64_MAX))
    assert (found.max_block_ms, found.linger_ms) == (INT32_MAX, INT32_MAX)


def test_a_batch_of_no_bytes_holds_one_record_as_in_java() -> None:
    assert config(batch_size="0").batch_size == 1


# -- compression -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codec", "name", "level"),
    [(Codec.GZIP, "gzip", 9), (Codec.LZ4, "lz4", 17), (Codec.ZSTD, "zstd", 22)],
)
def test_each_type_has_its_own_level(codec: Codec, name: str, level: int) -> None:
    given = {"compression_type": name, f"compression_{name}_level": str(level)}
    assert config(**given).compression == Compression(codec, level)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_the_others_have_none(codec: Codec) -> None:
    assert config(compression_type=str(codec)).compression == Compression(codec)


@pytest.mark.parametrize(
    ("name", "level"), [("gzip", "10"), ("gzip", "0"), ("lz4", "18"), ("zstd", "23")]
)
def test_a_level_that_there_is_not_is_refused_whatever_the_type(name: str, level: str) -> None:
    assert (
        refusal(**{f"compression_{name}_level": level}).option == f"kafka.compression.{name}.level"
    )


# -- partitioners ----------------------------------------------------------------------------------


def test_every_partitioner_has_its_name() -> None:
    assert set(Partitioner) - {Partitioner.ROUND_ROBIN} == PARTITIONERS.keys()


def test_without_a_word_keys_go_where_java_sends_them() -> None:
    found = config()
    assert key_partitioner(found) is MURMUR2
    assert found.has_sticky_partition


def test_librdkafkas_put_records_without_a_key_anywhere() -> None:
    found = config(partitioner="Consistent_Random")
    assert key_partitioner(found) is CONSISTENT_RANDOM
    assert not found.has_sticky_partition


def test_keys_may_be_ignored() -> None:
    found = config(partitioner="consistent_random", partitioner_ignore_keys="true")
    assert key_partitioner(found) is None
    assert found.has_sticky_partition


def test_round_robin_ignores_keys_and_has_no_sticky_partition() -> None:
    found = config(partitioner="round_robin", partitioner_ignore_keys="false")
    assert key_partitioner(found) is None
    assert not found.has_sticky_partition


@pytest.mark.parametrize(("name", "settings"), SETTINGS_BY_CLASS.items())
def test_kafkas_own_classes_stand_for_settings(name: str, settings: Mapping[str, str]) -> None:
    found = config(partitioner_class=name)
    assert (found.partitioner is Partitioner.ROUND_ROBIN) == ("RoundRobin" in name)
    assert found.partitioner_ignore_keys == (
        settings.get("kafka.partitioner.ignore.keys") == "true"
    )


@pytest.mark.parametrize("name", ["com.example.Mine", "RoundRobinPartitioner"])
def test_any_other_class_is_refused_with_what_to_use(name: str) -> None:
    error = refusal(partitioner_class=name)
    assert f"'{name}'" in error.found
    assert error.expected.endswith(
        "set 'kafka.partitioner' to one of murmur2, murmur2_random, consistent_random, round_robin"
    )
    error = refusal(partitioner_class=ROUND_ROBIN, partitioner="murmur2")
    assert "'kafka.partitioner', too" in error.found


# -- whole configurations --------------------------------------------------------------------------


def test_all_options_are_named() -> None:
    assert options_of(ProducerConfig).keys() | CLIENT_OPTIONS.keys() < PRODUCER_OPTIONS.keys()
    assert PRODUCER_OPTIONS.keys() - options_of(ProducerConfig).keys() - CLIENT_OPTIONS.keys() == {
        "kafka.partitioner.class"
    }


def test_it_can_be_sent_to_another_process() -> None:
    found = config(partitioner="murmur2_random", acks="1", compression_type="lz4")
    assert pickle.loads(pickle.dumps(found)) == found  # our own bytes
