"""The matrices of Kafka's Java clients have exactly the methods and settings of Kafka."""

import inspect
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Never

import pytest

from spark_kafka_source import RecordDeserializationError, WakeupError
from spark_kafka_source.admin.errors import (
    GroupNotEmptyError,
    GroupNotFoundError,
    TransactionNotFoundError,
)
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.errors import (
    BrokerError,
    ClosedError,
    ConfigurationError,
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
    TopicNotFoundError,
    UnsupportedVersionError,
)
from spark_kafka_source.fetch.losses import LogTruncatedError, OffsetOutOfRangeError
from spark_kafka_source.fetch.offset_reset import NoOffsetError
from spark_kafka_source.groups.assignors import assignors_named
from spark_kafka_source.groups.offsets import CommitFailedError
from spark_kafka_source.net.connection_failures import RequestTimeoutError
from spark_kafka_source.net.sasl.errors import AuthenticationError
from spark_kafka_source.producer import (
    BufferFullError,
    TransactionAbortedError,
    UnsendableRecordError,
)
from spark_kafka_source.producer.kafka_producer import KafkaProducer
from spark_kafka_source.producer.producer_config import config_from_arguments
from spark_kafka_source.records import ColumnTypeError, RowTooLargeError, UnencodableRowError
from spark_kafka_source.secret import Secret
from tools.java_clients.consumer import CONSUMER
from tools.java_clients.producer import PRODUCER
from tools.java_clients.rows import JavaClient, Verdict
from tools.java_clients.tables import render
from tools.java_program import JavaProgram, run_java

CLIENTS = [CONSUMER, PRODUCER]
EVERY_METHOD = [
    pytest.param(client, name, java, id=f"{name}.{java}")
    for client in CLIENTS
    for name, of_class in client.methods.items()
    for java in of_class
]
EVERY_SETTING = [
    pytest.param(client, name, id=f"{client.kind}-{name}")
    for client in CLIENTS
    for name in client.settings
]
of_each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.kind)


@pytest.fixture(scope="module")
def java(kafka_jars: list[Path]) -> Iterator[JavaProgram]:
    with run_java(Path(__file__).with_name("JavaClients.java"), kafka_jars) as program:
        yield program


def javas_methods(java: JavaProgram, client: JavaClient) -> dict[str, dict[str, set[str]]]:
    """Return the types of all parameters by class and method."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for line in java.ask(f"methods {client.kind}").split(";"):
        class_name, method, *types = line.split(" ")
        found[class_name.removeprefix("Kafka")][method].update(types)
    return found


def javas_defaults(java: JavaProgram, client: JavaClient) -> dict[str, str]:
    settings = (line.partition("=") for line in java.ask(f"settings {client.kind}").split(";"))
    return {name: default for name, _, default in settings}


# -- methods ---------------------------------------------------------------------------------------


@pytest.mark.java
@of_each_client
def test_the_table_has_every_java_method_and_no_other(
    java: JavaProgram, client: JavaClient
) -> None:
    javas = javas_methods(java, client)
    assert {name: set(of_class) for name, of_class in javas.items()} == {
        name: set(of_class) for name, of_class in client.methods.items()
    }


@pytest.mark.java
@of_each_client
def test_methods_accept_every_java_parameter(java: JavaProgram, client: JavaClient) -> None:
    """The test compares the number of parameters. Their names show that they match."""
    javas = javas_methods(java, client)
    for class_name, of_class in client.methods.items():
        for name, row in of_class.items():
            types = javas[class_name][name]
            enough = len(parameters(row.ours)) >= len(types) - (name in client.one_for_two)
            assert enough or row.verdict is Verdict.LEFT_OUT, name


@pytest.mark.parametrize(("client", "class_name", "javas"), EVERY_METHOD)
def test_what_is_here_is_there_with_the_parameters_that_are_said(
    client: JavaClient, class_name: str, javas: str
) -> None:
    row = client.methods[class_name][javas]
    if row.verdict is Verdict.LEFT_OUT:
        assert row.why and not row.ours
        return
    assert row.why or row.verdict is Verdict.HERE
    name, called, _ = row.ours.partition("(")
    ours = client.classes[class_name]
    if not called:
        assert name in attributes(ours)
        return
    signature = inspect.signature(getattr(ours, name))
    # What takes `Never` or None is there for an error with the way.
    slips = (Never, None)
    given = signature.parameters.values()
    ours_by_name = [each.name for each in given if each.annotation not in slips]
    assert [name for name in ours_by_name if name != "self"] == parameters(row.ours)


def parameters(ours: str) -> list[str]:
    return re.findall(r"\w+", ours.partition("(")[2])


def attributes(ours: type[Any]) -> set[str]:
    """Return the attributes: properties, and fields of tuples and dataclasses."""
    properties = {
        name for name, _ in inspect.getmembers(ours, lambda each: isinstance(each, property))
    }
    named = {each.name for each in fields(ours)} if is_dataclass(ours) else ours.__dict__
    return properties | set(getattr(ours, "_fields", named))


# -- configuration ---------------------------------------------------------------------------------


@pytest.mark.java
@of_each_client
def test_the_table_has_every_java_setting_and_no_other(
    java: JavaProgram, client: JavaClient
) -> None:
    assert client.settings.keys() == javas_defaults(java, client).keys()


@pytest.mark.java
@of_each_client
def test_defaults_equal_java_defaults_unless_the_table_says_otherwise(
    java: JavaProgram, client: JavaClient
) -> None:
    ours, javas = defaults(client), javas_defaults(java, client)
    here = {name for name, row in client.settings.items() if row.verdict is not Verdict.LEFT_OUT}
    assert here - ours.keys() == client.arguments
    for name in here & ours.keys():
        said = client.settings[name].default
        assert said is None or normal(name, said) != normal(name, javas[name]), name
        assert normal(name, ours[name]) == normal(name, javas[name] if said is None else said), name


@pytest.mark.parametrize(("client", "name"), EVERY_SETTING)
def test_a_setting_is_known_or_the_reason_is_said(
    client: JavaClient, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = client.settings[name]
    if row.verdict is not Verdict.LEFT_OUT:
        assert f"kafka.{name}" in client.vocabulary.known or name in client.arguments
        return
    given = {"bootstrap_servers": "a:1", "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}
    given |= {"sasl_username": "u", "sasl_password": "p", name: "a.b.C"}
    try:
        client.read(given)
        (said,) = caplog.messages
    except ConfigurationError as refused:
        said = str(refused)
    assert "is no configuration" not in said
    assert letters(row.why.partition(", as with")[0]) in letters(said)


def letters(text: str) -> str:
    """Return only the letters: names have dots or underscores, with or without a prefix."""
    return re.sub(r"kafka\.|[^a-z]", "", text.lower())


def normal(name: str, default: str) -> str:
    """Return one text for all texts with the same meaning."""
    if name == "partition.assignment.strategy":
        return ",".join(type(each).__name__ for each in assignors_named(default))
    if name == "sasl.oauthbearer.jwt.retriever.class":
        return default.rpartition(".")[2]
    return default.lower()


def defaults(client: JavaClient) -> dict[str, str]:
    """Return our defaults by Java's names."""
    return {
        name.removeprefix("kafka."): _text(option.kind.value)
        for name, option in client.vocabulary.known.items()
    }


def _text(default: object) -> str:
    return default.reveal() if isinstance(default, Secret) else str(default)


# -- metrics ---------------------------------------------------------------------------------------


@pytest.mark.java
def test_consumer_metrics_have_the_names_of_java_metrics(java: JavaProgram) -> None:
    with KafkaConsumer(bootstrap_servers="localhost:1") as consumer:
        ours = consumer.metrics().keys()
    # Java does not count these separately. They show a storm of failures.
    beyond = {"failed-join-total", "failed-sync-total", "failed-heartbeat-total"}
    # A partition's metric has this name after the partition's name.
    assert ours - beyond | {"records-lag"} <= set(java.ask("metrics consumer").split(";"))


@pytest.mark.java
def test_producer_metrics_have_the_names_of_java_metrics(java: JavaProgram) -> None:
    with KafkaProducer(bootstrap_servers="localhost:1") as producer:
        ours = producer.metrics().keys()
    assert ours <= set(java.ask("metrics producer").split(";"))


# -- errors ----------------------------------------------------------------------------------------


JAVAS_ERRORS: dict[type[KafkaError], str] = {
    AuthenticationError: "common.errors.AuthenticationException",
    BufferFullError: "clients.producer.BufferExhaustedException",
    ClosedError: "common.KafkaException",
    ColumnTypeError: "common.errors.SerializationException",
    CommitFailedError: "clients.consumer.CommitFailedException",
    ConfigurationError: "common.config.ConfigException",
    ConnectionFailedError: "common.errors.DisconnectException",
    GroupNotEmptyError: "common.errors.GroupNotEmptyException",
    GroupNotFoundError: "common.errors.GroupIdNotFoundException",
    KafkaTimeoutError: "common.errors.TimeoutException",
    LogTruncatedError: "clients.consumer.LogTruncationException",
    NoOffsetError: "clients.consumer.NoOffsetForPartitionException",
    OffsetOutOfRangeError: "clients.consumer.OffsetOutOfRangeException",
    RecordDeserializationError: "common.errors.RecordDeserializationException",
    RequestTimeoutError: "common.errors.TimeoutException",
    RowTooLargeError: "common.errors.RecordTooLargeException",
    TopicNotFoundError: "common.errors.UnknownTopicOrPartitionException",
    TransactionAbortedError: "common.errors.TransactionAbortedException",
    TransactionNotFoundError: "common.errors.TransactionalIdNotFoundException",
    UnencodableRowError: "common.errors.SerializationException",
    UnsendableRecordError: "common.errors.RecordTooLargeException",
    UnsupportedVersionError: "common.errors.UnsupportedVersionException",
    WakeupError: "common.errors.WakeupException",
}
"""Java's class for each of our errors that has one. The table of error codes has the others."""


@pytest.mark.java
@pytest.mark.parametrize("error_type", JAVAS_ERRORS, ids=lambda each: each.__name__)
def test_errors_are_retriable_exactly_if_java_errors_are(
    java: JavaProgram, error_type: type[KafkaError]
) -> None:
    # A broker's error has its remedy from the table; the others have that of their class.
    is_brokers = issubclass(error_type, BrokerError)
    error = error_type("t") if is_brokers else error_type.__new__(error_type)
    said = java.ask(f"retriable {JAVAS_ERRORS[error_type]}")
    assert str(error.retriable).lower() == said


# -- conditions between a producer's settings ------------------------------------------------------


CONDITIONS = {
    "acks": (None, "all", "-1", "1", "0"),
    "retries": (None, "0", "3"),
    "max.in.flight.requests.per.connection": (None, "5", "6"),
    "enable.idempotence": (None, "true", "false"),
    "transactional.id": (None, "t"),
}
"""The values of each setting. Tests use all combinations. None means not given."""
OTHER_CONDITIONS = (
    {"delivery.timeout.ms": "30005"},
    {"delivery.timeout.ms": "30004"},
    {"delivery.timeout.ms": "2147483647", "linger.ms": "2147483647"},
    {"request.timeout.ms": "200000"},
    {"request.timeout.ms": "200000", "delivery.timeout.ms": "120000"},
    {"linger.ms": "9223372036854775807"},
    {"max.block.ms": "9223372036854775807"},
    {"batch.size": "0"},
    {"batch.size": "-1"},
    {"compression.type": "zstd"},
    {"compression.type": "br"},
    {"compression.gzip.level": "-1"},
    {"compression.gzip.level": "0"},
    {"compression.gzip.level": "9"},
    {"compression.gzip.level": "10"},
    {"compression.lz4.level": "0"},
    {"compression.lz4.level": "17"},
    {"compression.lz4.level": "18"},
    {"compression.zstd.level": "-131072"},
    {"compression.zstd.level": "-131073"},
    {"compression.zstd.level": "22"},
    {"compression.zstd.level": "23"},
    {"acks": "2"},
    {"acks": "leader"},
    {"retries": "-1"},
    {"transactional.id": ""},
    {"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"},
    {"partitioner.class": "com.example.Mine"},
)


def combinations() -> Iterator[dict[str, str]]:
    for values in itertools.product(*CONDITIONS.values()):
        named = zip(CONDITIONS, values, strict=True)
        yield {name: value for name, value in named if value is not None}
    yield from OTHER_CONDITIONS


@pytest.mark.java
def test_settings_go_together_as_they_do_in_java(java: JavaProgram) -> None:
    for given in combinations():
        question = ",".join(f"{name}={value}" for name, value in given.items())
        assert ours_produces(given) == java.ask(f"produces {question}"), given


def ours_produces(given: dict[str, str]) -> str:
    """Return our configuration in the format of the Java program."""
    try:
        config = config_from_arguments({"bootstrap.servers": "a:1", **given})
    except ConfigurationError:
        return "refused"
    return str(config.enable_idempotence).lower()


# -- the pages -------------------------------------------------------------------------------------


@of_each_client
def test_the_page_has_the_matrix(client: JavaClient) -> None:
    _, tables, _ = client.marks.split(client.page)
    assert tables == render(client), "run `make java-clients`"
