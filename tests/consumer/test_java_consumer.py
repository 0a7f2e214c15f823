"""The matrix of Kafka's Java consumer: every row is Kafka's, every row of Kafka's is there."""

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.consumer import FetchConfig
from spark_kafka_source.consumer.consumer_config import KNOWN, ConsumerConfig, PollConfig
from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.consumer.offsets import OffsetAndTimestamp
from spark_kafka_source.consumer.subscription import ConsumerRebalanceListener
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups import GroupConfig, Member, OffsetAndMetadata
from spark_kafka_source.groups.assignors import assignors_named
from spark_kafka_source.net import ConnectionSettings, TlsSettings
from spark_kafka_source.net.sasl.logins import KerberosLogin
from spark_kafka_source.net.sasl.token_endpoint import TokenEndpoint
from spark_kafka_source.net.sasl.tokens import RefreshSettings
from spark_kafka_source.secret import Secret
from spark_kafka_source.settings import settings_of
from tests.consumer.java_consumer import CONFIGURATION, METHODS, Verdict
from tests.consumer.java_table import MARKS, README, render
from tests.java_program import JavaProgram, run_java

OURS: dict[str, Any] = {
    "Consumer": KafkaConsumer,
    "ConsumerRecords": ConsumerRecords,
    "ConsumerRecord": ConsumerRecord,
    "ConsumerRebalanceListener": ConsumerRebalanceListener,
    "OffsetAndMetadata": OffsetAndMetadata,
    "OffsetAndTimestamp": OffsetAndTimestamp,
    "ConsumerGroupMetadata": Member,
}
EVERY_METHOD = [(name, java) for name, of_class in METHODS.items() for java in of_class]
# A partition or a topic, by the same name.
ONE_FOR_TWO = {"records"}
ARGUMENTS_OF_THEIR_OWN = {"key.deserializer", "value.deserializer"}


@pytest.fixture(scope="module")
def java(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with run_java(Path(__file__).with_name("JavaConsumer.java"), kafka_jars) as program:
        yield program


@pytest.fixture(scope="module")
def javas_methods(java: JavaProgram) -> dict[str, dict[str, set[str]]]:
    """The types of all parameters by class and method."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for line in java.ask("methods").split(";"):
        class_name, method, *types = line.split(" ")
        found[class_name.replace("KafkaConsumer", "Consumer")][method].update(types)
    return found


@pytest.fixture(scope="module")
def javas_defaults(java: JavaProgram) -> dict[str, str]:
    settings = (line.partition("=") for line in java.ask("settings").split(";"))
    return {name: default for name, _, default in settings}


# -- methods ---------------------------------------------------------------------------------------


@pytest.mark.java
def test_a_row_for_each_method_of_javas_and_no_other(
    javas_methods: dict[str, dict[str, set[str]]],
) -> None:
    assert {name: set(of_class) for name, of_class in javas_methods.items()} == {
        name: set(of_class) for name, of_class in METHODS.items()
    }


@pytest.mark.java
def test_ours_take_what_javas_take(javas_methods: dict[str, dict[str, set[str]]]) -> None:
    """In number: that these are they can be seen by their names."""
    for class_name, name in EVERY_METHOD:
        row, types = METHODS[class_name][name], javas_methods[class_name][name]
        enough = len(parameters(row.ours)) >= len(types) - (name in ONE_FOR_TWO)
        assert enough or row.verdict is Verdict.LEFT_OUT, name


@pytest.mark.parametrize(("class_name", "javas"), EVERY_METHOD)
def test_what_is_here_is_there_with_the_parameters_that_are_said(
    class_name: str, javas: str
) -> None:
    row = METHODS[class_name][javas]
    if row.verdict is Verdict.LEFT_OUT:
        assert row.why and not row.ours
        return
    assert row.why or row.verdict is Verdict.HERE
    name, called, _ = row.ours.partition("(")
    if not called:
        assert name in attributes(OURS[class_name])
        return
    signature = inspect.signature(getattr(OURS[class_name], name))
    assert [each for each in signature.parameters if each != "self"] == parameters(row.ours)


def parameters(ours: str) -> list[str]:
    return re.findall(r"\w+", ours.partition("(")[2])


def attributes(ours: type[Any]) -> set[str]:
    """Those that are no methods: properties, and fields of tuples and dataclasses."""
    properties = {
        name for name, _ in inspect.getmembers(ours, lambda each: isinstance(each, property))
    }
    named = {each.name for each in fields(ours)} if is_dataclass(ours) else ours.__dict__
    return properties | set(getattr(ours, "_fields", named))


# -- configuration ---------------------------------------------------------------------------------


@pytest.mark.java
def test_a_row_for_each_setting_of_javas_and_no_other(javas_defaults: dict[str, str]) -> None:
    assert CONFIGURATION.keys() == javas_defaults.keys()


@pytest.mark.java
def test_defaults_are_javas_where_the_row_does_not_say_otherwise(
    javas_defaults: dict[str, str],
) -> None:
    ours = defaults()
    here = {name for name, row in CONFIGURATION.items() if row.verdict is not Verdict.LEFT_OUT}
    assert here - ours.keys() == ARGUMENTS_OF_THEIR_OWN
    for name in here & ours.keys():
        javas, said = javas_defaults[name], CONFIGURATION[name].default
        assert said is None or normal(name, said) != normal(name, javas), name
        assert normal(name, ours[name]) == normal(name, javas if said is None else said), name


@pytest.mark.parametrize("name", CONFIGURATION)
def test_a_setting_is_known_or_the_reason_is_said(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = CONFIGURATION[name]
    if row.verdict is not Verdict.LEFT_OUT:
        assert f"kafka.{name}" in KNOWN or name in ARGUMENTS_OF_THEIR_OWN
        return
    given = {"bootstrap_servers": "a:1", "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}
    given |= {"sasl_username": "u", "sasl_password": "p", name: "a.b.C"}
    try:
        ConsumerConfig.from_arguments(given)
        (said,) = (record.getMessage() for record in caplog.records)
    except ConfigurationError as refused:
        said = str(refused)
    assert "is no configuration" not in said
    assert letters(row.why.partition(", as with")[0]) in letters(said)


def letters(text: str) -> str:
    """Only those: names are said with dots and with underscores, with a prefix and without."""
    return re.sub(r"kafka\.|[^a-z]", "", text.lower())


def normal(name: str, default: str) -> str:
    """Texts that mean the same are the same."""
    if name == "partition.assignment.strategy":
        return ",".join(type(each).__name__ for each in assignors_named(default))
    if name == "sasl.oauthbearer.jwt.retriever.class":
        return default.rpartition(".")[2]
    return default.lower()


def defaults() -> dict[str, str]:
    """Ours, by Java's names."""
    of_fields = {
        option.removeprefix("kafka."): field.default
        for config_type in (
            *(ClientConfig, ConnectionSettings, FetchConfig, PollConfig, GroupConfig, TlsSettings),
        )
        for option, field in settings_of(config_type).items()
    }
    logins = {
        "sasl.login.refresh": RefreshSettings,
        "sasl.login": TokenEndpoint,
        "sasl.kerberos": KerberosLogin,
    }
    of_logins = {
        f"{prefix}.{field.name.replace('_', '.')}": field.default
        for prefix, login in logins.items()
        for field in fields(login)
    }
    return {name: _text(default) for name, default in (of_logins | of_fields | _OTHERS).items()}


_OTHERS: dict[str, object] = {
    "bootstrap.servers": "",
    "security.protocol": "PLAINTEXT",
    "sasl.oauthbearer.header.urlencode": False,
    **dict.fromkeys(
        (
            "sasl.client.callback.handler.class",
            "sasl.jaas.config",
            "sasl.login.callback.handler.class",
            "sasl.login.class",
            "sasl.mechanism",
            "sasl.oauthbearer.client.credentials.client.id",
            "sasl.oauthbearer.client.credentials.client.secret",
            "sasl.oauthbearer.jwt.retriever.class",
            "sasl.oauthbearer.scope",
            "sasl.oauthbearer.token.endpoint.url",
        ),
        "",
    ),
}
"""Read elsewhere, and nothing by default."""


def _text(default: object) -> str:
    if isinstance(default, Secret):
        return default.reveal()
    return default.name if isinstance(default, Enum) else str(default)


# -- metrics ---------------------------------------------------------------------------------------


@pytest.mark.java
def test_metrics_have_javas_names(java: JavaProgram) -> None:
    with KafkaConsumer(bootstrap_servers="localhost:1") as consumer:
        ours = consumer.metrics().keys()
    # Java counts none of these alone; a storm of them is to be seen, too.
    beyond = {"failed-join-total", "failed-sync-total", "failed-heartbeat-total"}
    # Of a partition it is that, and its name before.
    assert ours - beyond | {"records-lag"} <= set(java.ask("metrics").split(";"))


# -- the README ------------------------------------------------------------------------------------


def test_the_readme_has_the_matrix() -> None:
    _, tables, _ = MARKS.split(README)
    assert tables == render(), "run `make java-consumer`"
