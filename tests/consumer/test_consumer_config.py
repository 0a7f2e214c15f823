"""A `KafkaConsumer`'s arguments, and the errors for wrong arguments."""

from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source import KafkaAdmin, KafkaConsumer, KafkaProducer
from spark_kafka_source.consumer.consumer_config import CONSUMER_OPTIONS, ConsumerConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch.offset_reset import EARLIEST, LATEST, NONE, parse_reset
from spark_kafka_source.groups import GroupProtocol
from spark_kafka_source.records import IsolationLevel
from spark_kafka_source.secret import Secret

pytestmark = pytest.mark.memory(nodes=3)

SERVERS = {"bootstrap_servers": "localhost:9092"}


def config(**arguments: Any) -> ConsumerConfig:
    return ConsumerConfig.from_arguments(SERVERS | arguments)


def refusal(**arguments: Any) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        config(**arguments)
    return caught.value


def test_defaults_are_kafkas() -> None:
    found = config()
    assert found.group is None
    assert found.reset == LATEST
    assert found.poll.enable_auto_commit
    assert found.poll.auto_commit_interval_ms == 5_000
    assert (found.fetch.fetch_min_bytes, found.fetch.fetch_max_wait_ms) == (1, 500)


def test_values_may_be_of_many_types() -> None:
    found = config(
        bootstrap_servers=["a:1", "b:2"],
        group_id="g",
        group_protocol=GroupProtocol.CONSUMER,
        isolation_level=IsolationLevel.READ_COMMITTED,
        enable_auto_commit=False,
        max_poll_records=7,
        partition_assignment_strategy=("range", "sticky"),
    )
    assert [str(each) for each in found.client.bootstrap_servers] == ["a:1", "b:2"]
    assert found.group is not None
    assert found.group.group_protocol is GroupProtocol.CONSUMER
    assert found.group.partition_assignment_strategy == "range,sticky"
    assert found.fetch.isolation_level is IsolationLevel.READ_COMMITTED
    assert not found.poll.enable_auto_commit
    assert found.poll.max_poll_records == 7


def test_dots_do_as_well_and_none_is_nothing() -> None:
    found = ConsumerConfig.from_arguments({"bootstrap.servers": "a:1", "group_id": None})
    assert found.group is None
    assert ConsumerConfig.from_arguments(SERVERS | {"client.id": "me"}).client


@pytest.mark.parametrize(
    ("arguments", "option", "text"),
    [
        ({"bootstrap_servers": None}, "bootstrap_servers", "missing"),
        ({"bootstrap_servers": "nowhere"}, "bootstrap_servers", "nowhere"),
        ({"max_poll_records": 0}, "max_poll_records", "found '0'"),
        ({"max_poll_records": "many"}, "max_poll_records", "found 'many'"),
        ({"enable_auto_commit": "yes"}, "enable_auto_commit", "'true' or 'false'"),
        ({"auto_offset_reset": "begin"}, "auto_offset_reset", "'earliest'"),
        ({"auto_offset_reset": "by_duration:1h"}, "auto_offset_reset", "PT1H30M"),
        (
            {"isolation_level": "Foo"},
            "isolation_level",
            "found 'Foo'. Give one of read_uncommitted, read_committed",
        ),
        (
            {"group_id": "g", "group_protocol": "kip848"},
            "group_protocol",
            "found 'kip848'. Give one of classic, consumer",
        ),
        (
            {"group_id": "g", "partition_assignment_strategy": "fair"},
            "partition_assignment_strategy",
            "cooperative-sticky",
        ),
        (
            {"group_id": "g", "session_timeout_ms": 10, "heartbeat_interval_ms": 10},
            "heartbeat_interval_ms",
            "'session_timeout_ms'",
        ),
        ({"groupid": "g"}, "groupid", "'group_id'"),
        ({"max_poll_record": 1}, "max_poll_record", "'max_poll_records'"),
        ({"metadata_broker_list": "a:1"}, "metadata_broker_list", "Did you mean 'bootstrap_ser"),
        ({"rebalance_callback_class": "x"}, "rebalance_callback_class", "argument `listener`"),
        ({"rebalance_cb": "x"}, "rebalance_cb", "argument `listener`"),
        ({"Max_Poll_Records": 0}, "Max_Poll_Records", "found '0'"),
        ({"group_id": "g", "group.id": "h"}, "group_id", "twice"),
        ({"max_poll_records": object()}, "max_poll_records", "of type object"),
        (
            {"security_protocol": "PLAIN"},
            "security_protocol",
            "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        ({"ssl_truststore_location": Path("/none")}, "ssl_truststore_location", ""),
    ],
)
def test_what_cannot_be_used_is_named_as_it_was_given(
    arguments: dict[str, Any], option: str, text: str
) -> None:
    found = refusal(**arguments)
    assert found.option == option
    assert text in str(found)
    assert "kafka." not in str(found)


@pytest.mark.parametrize("option", ["security_protocol", "sasl_mechanism", "ssl_protocol"])
def test_a_password_in_a_wrong_place_of_security_is_not_shown(option: str) -> None:
    given = {"security_protocol": "SASL_SSL", "sasl_username": "u", "sasl_password": "p"}
    error = refusal(**given | {"sasl_mechanism": "PLAIN", option: "hunter2"})
    assert error.option == option
    assert "redacted" in str(error)
    assert "hunter2" not in f"{error} {error!r}"


@pytest.mark.parametrize("password", ["hidden-text", Secret("hidden-text")])
def test_secrets_are_never_shown(password: str | Secret) -> None:
    sasl = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_jaas_config": f"org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="u" password="{"hidden-text"}";',
    }
    assert "hidden-text" not in repr(config(**sasl))
    wrong: list[dict[str, Any]] = [
        {"ssl_keystore_password": password, "ssl_keystore_location": "/none"},
        {"security_protocol": "SSL", "ssl_key_password": password, "ssl_keystore_key": "x"},
        {**sasl, "sasl_jaas_config": "hidden-text"},
        {"sasl_jaas_confg": password},
    ]
    for arguments in wrong:
        try:
            assert "hidden-text" not in repr(config(**arguments))
        except ConfigurationError as error:
            assert "hidden-text" not in f"{error} {error!r} {error.__cause__!r}"


def test_every_configuration_has_a_name_that_python_can_say() -> None:
    assert all(
        name.removeprefix("kafka.").replace(".", "_").isidentifier() for name in CONSUMER_OPTIONS
    )


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P2DT3H4M5.5S", 183_845_500),
        ("pt0.001s", 1),
        ("PT0S", 0),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_reset(f"by_duration:{text}").duration_ms == milliseconds


@pytest.mark.parametrize("text", ["P", "PT", "P1DT", "1H", "PT-1H", "P1M", "P1Y", "PT1H ", ""])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"auto\.offset\.reset"):
        parse_reset(f"by_duration:{text}x")


def test_policies_by_name() -> None:
    assert parse_reset(" Earliest ") == EARLIEST
    assert parse_reset("none") == NONE
    assert NONE.is_none
    assert not EARLIEST.is_none


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("min_fetch_bytes", "Did you mean 'fetch_min_bytes'?"),
        ("auto.commit.enable", "Did you mean 'enable.auto.commit'?"),
        ("fetch.wait.max.ms", "Did you mean 'fetch.max.wait.ms'?"),
        ("fetch_message_max_bytes", "Did you mean 'max_partition_fetch_bytes'?"),
        ("metadata_fetch_timeout_ms", "Did you mean 'default_api_timeout_ms'?"),
        ("socket.timeout.ms", "Did you mean 'request.timeout.ms'?"),
        ("bootstrap_server", "Did you mean 'bootstrap_servers'?"),
        ("consumer_timeout_ms", "Give `timeout_ms` to `poll`"),
        ("enable.auto.offset.store", "set 'enable.auto.commit' to false, and `commit`"),
        ("enable_partition_eof", "Compare `position` with `end_offsets`"),
        ("default_offset_commit_callback", "Give the callback to `commit_async`"),
        ("topics", "Give the topics to `subscribe`"),
        ("message.timeout.ms", "It is a producer's"),
        ("api_version", "Leave it out: brokers tell their versions"),
        ("ssl_context", "'ssl_truststore_location' and 'ssl_keystore_location'"),
        ("ssl_cafile", "Did you mean 'ssl_truststore_location'?"),
        ("ssl.ca.location", "Did you mean 'ssl.truststore.location'?"),
        ("ssl.ca.pem", "Did you mean 'ssl.truststore.certificates'?"),
        ("ssl_certfile", "the key and its certificates as 'ssl_keystore_location'"),
        ("ssl.key.location", "the key and its certificates as 'ssl.keystore.location'"),
        ("ssl.certificate.pem", "Did you mean 'ssl.keystore.certificate.chain'?"),
        ("ssl.key.pem", "Did you mean 'ssl.keystore.key'?"),
        ("ssl_password", "Did you mean 'ssl_key_password'?"),
        ("ssl_check_hostname", "unless 'ssl_endpoint_identification_algorithm' is empty"),
        ("enable.ssl.certificate.verification", "file as 'ssl.truststore.location'"),
        ("sasl_plain_username", "Did you mean 'sasl_username'?"),
        ("sasl_plain_password", "Did you mean 'sasl_password'?"),
        ("sasl.kerberos.keytab", "`keyTab` in 'sasl.jaas.config'"),
        ("sasl_oauth_token_provider", "Give a `token_provider`"),
        ("oauth_cb", "Give a `token_provider`"),
        ("sasl.oauthbearer.client.id", "'sasl.oauthbearer.client.credentials.client.id'?"),
        ("sasl.oauthbearer.client.secret", "'sasl.oauthbearer.client.credentials.client.secret'?"),
        ("sasl.oauthbearer.extensions", "in 'sasl.jaas.config'"),
        ("ssl.any", "See docs/options.md for all"),
        ("sasl_any", "See docs/options.md for all"),
        # There is no such thing here, and no likeness misleads.
        ("statistics_interval_ms", "See docs/options.md for all"),
        ("queued.min.messages", "See docs/options.md for all"),
    ],
)
def test_settings_of_other_clients_are_answered_by_the_right_name_or_a_remedy(
    name: str, expected: str
) -> None:
    for value in ("1", object()):
        assert expected in str(refusal(**{name: value}))


@pytest.mark.parametrize("client", [KafkaConsumer, KafkaProducer, KafkaAdmin])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"sasl.password": "canary"}, r"Write two stars before the dict: {}\(\*\*configuration\)"),
        ("canary", r"Give settings by name: {}\(bootstrap_servers='localhost:9092'\)"),
        (["canary"], r"as a list\. Give settings by name"),
    ],
)
def test_settings_by_position_as_other_clients_take_them(
    client: Any, given: object, expected: str
) -> None:
    with pytest.raises(ConfigurationError, match=expected.format(client.__name__)) as refused:
        client(given)
    assert "canary" not in str(refused.value)
    assert ("`subscribe`" in str(refused.value)) == (
        client is KafkaConsumer and not isinstance(given, dict)
    )


def test_a_dict_with_two_stars_is_taken() -> None:
    with KafkaConsumer(**{"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}) as consumer:  # type: ignore[arg-type]
        assert consumer.subscription() == set()
