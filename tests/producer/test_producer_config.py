"""A producer's arguments, and the errors for wrong arguments."""

import pickle
from typing import Any

import pytest

from spark_kafka_source.consumer.consumer_config import CONSUMER_OPTIONS, ConsumerConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Use
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.producer.config import Acks, Partitioner, ProducerConfig
from spark_kafka_source.producer.producer_config import VOCABULARY, config_from_arguments
from spark_kafka_source.records import Codec

SERVERS = {"bootstrap_servers": "localhost:9092"}


def config(**arguments: Any) -> ProducerConfig:
    return config_from_arguments(SERVERS | arguments)


def refusal(**arguments: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        config(**arguments)
    return caught.value


def test_values_may_be_of_many_types() -> None:
    found = config(
        bootstrap_servers=["a:1", "b:2"],
        acks=Acks.LEADER,
        compression_type=Codec.GZIP,
        partitioner=Partitioner.CONSISTENT_RANDOM,
        enable_idempotence=False,
        linger_ms=7,
        transactional_id=None,
    )
    assert [str(each) for each in found.client.bootstrap_servers] == ["a:1", "b:2"]
    assert (found.acks, found.compression_type) == (Acks.LEADER, Codec.GZIP)
    assert found.partitioner is Partitioner.CONSISTENT_RANDOM
    assert (found.enable_idempotence, found.linger_ms) == (False, 7)
    assert config(acks=-1).acks is config(acks="all").acks is Acks.ALL
    assert config(acks=0).acks is Acks.NONE


@pytest.mark.parametrize(
    ("arguments", "option", "text"),
    [
        ({"bootstrap_servers": None}, "bootstrap_servers", "missing"),
        ({"acks": 2}, "acks", "found '2'"),
        ({"acks": 1, "enable_idempotence": True}, "acks", "'enable_idempotence' is 'true'"),
        ({"acks": 1, "enable.idempotence": True}, "acks", "'enable.idempotence' is 'true'"),
        ({"acks": 1, "transactional.id": "t"}, "transactional.id", "'enable.idempotence' is"),
        ({"delivery_timeout_ms": 1}, "delivery_timeout_ms", "'linger_ms' and 'request_timeout_ms'"),
        ({"compression_lz4_level": 20}, "compression_lz4_level", "it is 20"),
        ({"partitioner_class": "a.B"}, "partitioner_class", "set 'partitioner'"),
        ({"linger_ms": 1, "linger.ms": 2}, "linger_ms", "twice"),
        ({"linger": 1}, "linger", "is no configuration of this producer. Did you mean 'linger_ms'"),
        ({"message_timeout_ms": 1}, "message_timeout_ms", "Did you mean 'delivery_timeout_ms'"),
        ({"request.required.acks": 1}, "request.required.acks", "Did you mean 'acks'"),
        ({"timeout.ms": 1}, "timeout.ms", "Did you mean 'request.timeout.ms'"),
        ({"metadata_fetch_timeout_ms": 1}, "metadata_fetch_timeout_ms", "mean 'max_block_ms'"),
        ({"block.on.buffer.full": 1}, "block.on.buffer.full", "wait for room, as 'max.block.ms'"),
        ({"x": 1}, "x", "is no configuration of this producer"),
        ({"sasl_mechanisms": "PLAIN"}, "sasl_mechanisms", "has no effect with PLAINTEXT"),
        ({"linger_ms": object()}, "linger_ms", "of type object"),
    ],
)
def test_what_cannot_be_used_is_named_as_it_was_given(
    arguments: dict[str, Any], option: str, text: str
) -> None:
    found = refusal(**arguments)
    assert found.option == option
    assert text in str(found)
    assert "kafka." not in str(found)


def test_what_goes_wrong_later_is_named_so_too() -> None:
    found = pickle.loads(pickle.dumps(config(**{"linger.ms": 1})))  # our own bytes
    assert found.spelling["kafka.linger.ms"] == "linger.ms"
    assert found.spelling["kafka.max.block.ms"] == "max.block.ms"
    assert found.spelling["kafka.bootstrap.servers"] == "bootstrap_servers"


def test_each_client_of_a_process_has_an_id_of_its_own() -> None:
    """Consumers and producers count together: a broker's logs and quotas do not separate them."""
    ids = [
        config().client.connection.client_id,
        config(transactional_id="t").client.connection.client_id,
        ConsumerConfig.from_arguments(SERVERS).client.connection.client_id,
    ]
    numbers = [int(each.rpartition("-")[2]) for each in ids]
    assert numbers == list(range(numbers[0], numbers[0] + 3))
    assert ids[1] == f"spark-kafka-source-t-{numbers[1]}"
    assert config(client_id="mine").client.connection.client_id == "mine"


# -- options without an effect ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("metrics.recording.level", "all figures are recorded"),
        ("group_id", "it is a consumer's, and this only writes"),
        ("max.poll.records", "it is a consumer's, and this only writes"),
        ("value_deserializer", "it is a consumer's, and this only writes"),
        ("partitioner_availability_timeout_ms", "a slow partition gets fewer records"),
    ],
)
def test_what_does_nothing_here_says_why(
    name: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    config(**{name: "secret"})
    (message,) = caplog.messages
    assert message.startswith(f"'{name}' has no effect here: ")
    assert message.endswith(reason)
    assert "secret" not in message


def test_what_is_done_anyway_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    done = other_names(Use.PRODUCER).done
    config(**{name.removeprefix("kafka."): value for name, value in done.items()})
    assert not caplog.messages


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("key.serializer", "function"),
        ("value_serializer", "`str.encode`"),
        ("interceptor_classes", "`on_delivery`"),
        ("transaction.two.phase.commit.enable", "KIP-939"),
    ],
)
def test_what_would_be_relied_on_is_refused_with_what_to_use(name: str, instead: str) -> None:
    error = refusal(**{name: "true"})
    assert (error.option, error.found) == (name, "is not supported")
    assert instead in error.expected


def test_what_is_one_kinds_the_other_says_it_is_not_its_own() -> None:
    """Exceptions are options of both kinds, and our own options, which Kafka does not have."""
    of_producers, of_consumers = other_names(Use.PRODUCER), other_names(Use.CONSUMER)
    producers = VOCABULARY.known.keys() | of_producers.refused.keys()
    assert producers - CONSUMER_OPTIONS.keys() - of_consumers.reasons.keys() == {
        "kafka.partitioner",
        *(of_producers.refused.keys() & of_consumers.refused.keys()),
    }
    assert CONSUMER_OPTIONS.keys() - set(VOCABULARY.known) - of_producers.reasons.keys() == set()
