"""Options of Kafka's consumer that ours lacks: a warning with the reason, or an alternative."""

from typing import Any

import pytest

from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Use
from spark_kafka_source.options.other_names import other_names

OTHERS = other_names(Use.CONSUMER)


def warned(caplog: pytest.LogCaptureFixture, **arguments: Any) -> list[str]:
    ConsumerConfig.from_arguments({"bootstrap_servers": "localhost:9092", **arguments})
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("metrics.recording.level", "all figures are recorded"),
        ("security_providers", "Java's security providers cannot be used here"),
        ("acks", "it is a producer's, and this only reads"),
    ],
)
def test_what_does_nothing_here_says_why(
    name: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = warned(caplog, **{name: "secret"})
    assert message.startswith(f"'{name}' has no effect here: ")
    assert message.endswith(reason)
    assert "secret" not in message


def test_what_is_done_anyway_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    given = {name.removeprefix("kafka."): value for name, value in OTHERS.done.items()}
    assert not warned(caplog, **given)
    assert not warned(caplog, interceptor_classes=[])


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("key.deserializer", "function of bytes"),
        ("interceptor_classes", "`commit_async`"),
        ("ssl_engine_factory_class", "ssl.keystore.location"),
        ("sasl_oauthbearer_assertion_file", "client.credentials.client.secret"),
        ("sasl_oauthbearer_jwt_validator_class", "Leave it to the broker"),
    ],
)
def test_what_would_be_relied_on_is_refused_with_what_to_use(name: str, instead: str) -> None:
    given = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", name: "a.b.C"}
    with pytest.raises(ConfigurationError, match="is not supported") as refused:
        ConsumerConfig.from_arguments({"bootstrap_servers": "localhost:9092", **given})
    assert refused.value.option == name
    assert instead.replace(".", "_") in refused.value.expected.replace(".", "_")


@pytest.mark.parametrize("given", [object(), [object()], object], ids=["one", "list", "class"])
def test_an_object_for_what_is_refused_is_told_the_same(given: object) -> None:
    arguments = {"bootstrap_servers": "localhost:9092", "interceptor_classes": given}
    with pytest.raises(ConfigurationError, match=r"is not supported.*`commit_async`") as refused:
        ConsumerConfig.from_arguments(arguments)
    assert refused.value.option == "interceptor_classes"


def test_a_slip_is_told_of_what_may_have_been_meant() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'max_poll_records'"):
        ConsumerConfig.from_arguments({"bootstrap_servers": "a:1", "max_pol_records": "1"})
    with pytest.raises(ConfigurationError, match="is no configuration"):
        ConsumerConfig.from_arguments({"bootstrap_servers": "a:1", "x": "1"})
