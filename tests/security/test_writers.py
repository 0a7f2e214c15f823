"""A `KafkaProducer` with all logins to a secured broker, and errors for missing rights."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source import (
    ConfigResource,
    KafkaAdmin,
    KafkaProducer,
    NewTopic,
    Secret,
    SendFuture,
    Token,
)
from spark_kafka_source.errors import BrokerError, KafkaError
from spark_kafka_source.net import AuthenticationError, authentication
from spark_kafka_source.net.authentication import Ask, authenticate
from spark_kafka_source.net.sasl.mechanism import Mechanism
from spark_kafka_source.net.sasl.tokens import token_cache
from spark_kafka_source.net.session import Session
from spark_kafka_source.testing import LocalKafka, Security
from tests.producer.reading import read_by_confluent
from tests.security.acls import CLUSTER, allow
from tests.security.options import (
    ENCRYPTED,
    FORMS,
    USERS,
    WAYS,
    Options,
    certificate_options,
    options_of,
    token_options,
)
from tests.security.writing import VALUES, producer_of, write

pytestmark = pytest.mark.kafka

WAIT_SECONDS = 60.0
TOKEN_SECONDS = 3
OUTLASTED_SECONDS = 6.0


def values_in(kafka: LocalKafka, topic: str) -> list[bytes | None]:
    found = read_by_confluent(kafka.bootstrap_servers_of("INTERNAL"), topic, 1)
    return [row.value for rows in found.values() for row in rows]


def assert_writes(
    kafka: LocalKafka, topic: str, options: Options, provider: object = None, **more: str
) -> None:
    kafka.create_topic(topic)
    write(options | more | {"subscribe": topic}, provider)  # type: ignore[arg-type]
    assert values_in(kafka, topic) == VALUES


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_records_pass_each_listener_by_each_mechanism(
    secured: LocalKafka, topic: str, listener: str, mechanism: str
) -> None:
    assert_writes(secured, topic, options_of(secured, listener, mechanism))


def test_a_transaction_passes_by_tls_and_sasl(secured: LocalKafka, topic: str) -> None:
    """Requests to the transaction's and the group's coordinator have their own connections."""
    options = options_of(secured, "SASL_SSL", "SCRAM-SHA-512") | {"kafka.group.id": topic}
    assert_writes(secured, topic, options | {"kafka.transactional.id": topic})


@pytest.mark.parametrize("form", [form for form in FORMS if form != "JKS"])
def test_certificates_in_every_form(secured: LocalKafka, topic: str, form: str) -> None:
    assert_writes(secured, topic, options_of(secured, "MTLS", form=form))


def test_a_key_that_is_encrypted(secured: LocalKafka, topic: str) -> None:
    options = options_of(secured, "SSL") | {
        "kafka.bootstrap.servers": secured.bootstrap_servers_of("MTLS")
    }
    key = certificate_options(secured.authority.issue("alice"), ENCRYPTED)
    assert_writes(secured, topic, options | key)


def test_a_delegation_token(secured: LocalKafka, topic: str) -> None:
    token = secured.delegation_token("alice")
    options = options_of(secured, "SASL_SSL", "SCRAM-SHA-256")
    assert_writes(secured, topic, options | token_options(token.token_id, token.hmac.reveal()))


class Provider:
    """A user's token provider."""

    def __init__(self, text: Secret) -> None:
        self._text = text

    def token(self) -> Token:
        return Token(self._text, time.time() + 600)


def test_tokens_of_the_users_own(secured: LocalKafka, topic: str) -> None:
    secured.create_topic(topic)
    options = options_of(secured, "SASL_SSL", "OAUTHBEARER")
    arguments: dict[str, Any] = {
        name.removeprefix("kafka."): text
        for name, text in options.items()
        if not any(each in name for each in ("oauth", "handler", "jaas"))
    }
    provider = Provider(secured.token_server.token("alice"))
    with KafkaProducer(token_provider=provider, **arguments) as producer:
        producer.send_columns(topic, pa.table({"value": VALUES})).result(WAIT_SECONDS)
    assert values_in(secured, topic) == VALUES


def test_an_error_names_the_arguments_as_they_were_given(secured: LocalKafka, topic: str) -> None:
    options = options_of(secured, "SASL_SSL", "PLAIN", password="wrong-canary")
    arguments: dict[str, Any] = {
        name.removeprefix("kafka.").replace(".", "_"): text for name, text in options.items()
    }
    with KafkaProducer(**arguments) as producer:
        with pytest.raises(AuthenticationError, match="'sasl_jaas_config'") as refused:
            producer.send(topic, b"")
        assert "wrong-canary" not in f"{refused.value}{refused.value!r}{producer!r}"


# -- sessions --------------------------------------------------------------------------------------


@pytest.fixture
def short_tokens(secured: LocalKafka) -> Iterator[None]:
    """Shorten tokens: a session lasts as long as its token."""
    before = secured.token_server.lifetime_seconds
    secured.token_server.lifetime_seconds = TOKEN_SECONDS
    token_cache.cache_clear()  # Another test may have cached a longer token.
    yield
    secured.token_server.lifetime_seconds = before


@pytest.mark.long
@pytest.mark.usefixtures("short_tokens")
@pytest.mark.parametrize(
    ("listener", "mechanism"), [("SASL_SSL", "OAUTHBEARER"), ("SASL_SSL_BRIEF", "SCRAM-SHA-256")]
)
def test_a_producer_outlasts_its_sessions(
    secured: LocalKafka,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    listener: str,
    mechanism: str,
) -> None:
    """Several requests are in flight. No record is lost, doubled or out of order."""
    logins: Counter[str] = Counter()

    def counted(ask: Ask, used: Mechanism) -> Session:
        logins[used.name] += 1
        return authenticate(ask, used)

    monkeypatch.setattr(authentication, "authenticate", counted)
    secured.create_topic(topic)
    options = options_of(secured, listener, mechanism) | {"kafka.batch.size": "1000"}
    until_seconds = time.monotonic() + OUTLASTED_SECONDS
    futures: list[SendFuture] = []
    with producer_of(options) as producer:
        while time.monotonic() < until_seconds:
            futures += [producer.send(topic, b"%d" % (len(futures) + each)) for each in range(50)]
            time.sleep(0.005)
        for each in futures:
            each.result(WAIT_SECONDS)
    assert values_in(secured, topic) == [b"%d" % number for number in range(len(futures))]
    assert logins[mechanism] > 2  # One login is for the look-up of the topic.


# -- rights ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict() -> Iterator[LocalKafka]:
    """Run a broker where users have only granted rights, and which creates topics on request."""
    with LocalKafka(
        security=Security(USERS, allow_everyone=False),
        properties={"auto.create.topics.enable": "true"},
    ) as kafka:
        yield kafka


def denial(kafka: LocalKafka, topic: str, **more: str) -> str:
    """Return the error of bob's write to a topic. It fails at once."""
    options = options_of(kafka, "SASL_SSL", "PLAIN", user="bob") | more
    started_seconds = time.monotonic()
    with pytest.raises(KafkaError) as caught:
        write(options | {"subscribe": topic})
    assert isinstance(caught.value, BrokerError)
    assert time.monotonic() - started_seconds < WAIT_SECONDS / 2  # There is no retry.
    return str(caught.value)


def test_rights_of_a_writer_are_named_one_after_another(strict: LocalKafka, topic: str) -> None:
    text = denial(strict, topic)
    assert f"needs WRITE on topic '{topic}'" in text
    assert "and CREATE where the topic has to be created" in text
    strict.create_topic(topic)
    allow(strict, "bob", "DESCRIBE", topic=topic)
    text = denial(strict, topic)
    assert "needs IDEMPOTENT_WRITE on the cluster" in text
    assert "WRITE on any topic" in text
    text = denial(strict, topic, **{"kafka.enable.idempotence": "false"})
    assert f"Produce to {topic}-0" in text
    assert f"needs WRITE on topic '{topic}'" in text
    allow(strict, "bob", "IDEMPOTENT_WRITE", broker=CLUSTER)
    assert f"Produce to {topic}-0" in denial(strict, topic)
    allow(strict, "bob", "WRITE", topic=topic)
    text = denial(strict, topic, **{"kafka.transactional.id": topic})
    assert f"needs WRITE on transactional id '{topic}'" in text
    allow(strict, "bob", "WRITE", transactional_id=topic)
    group = {"kafka.transactional.id": topic, "kafka.group.id": topic}
    assert f"needs READ on group '{topic}'" in denial(strict, topic, **group)
    allow(strict, "bob", "READ", group=topic)
    assert f"needs READ on topic '{topic}'" in denial(strict, topic, **group)
    allow(strict, "bob", "READ", topic=topic)
    options = options_of(strict, "SASL_SSL", "PLAIN", user="bob")
    write(options | group | {"subscribe": topic})


def test_who_may_create_topics_does_so_by_writing(strict: LocalKafka, topic: str) -> None:
    allow(strict, "carol", "CREATE", topic=topic)
    allow(strict, "carol", "WRITE", topic=topic)
    write(options_of(strict, "MTLS", user="carol") | {"subscribe": topic})
    assert values_in(strict, topic) == VALUES


def test_rights_of_one_who_makes_topics_are_named_one_after_another(
    strict: LocalKafka, topic: str
) -> None:
    options = options_of(strict, "SASL_SSL", "PLAIN", user="alice")
    settings: dict[str, Any] = {
        name.removeprefix("kafka."): value for name, value in options.items()
    }
    with KafkaAdmin(**settings) as admin:
        found = admin.create_topics([NewTopic(topic)])
        assert f"The user needs CREATE on topic '{topic}', or on the cluster" in str(found[topic])
        allow(strict, "alice", "CREATE", topic=topic)
        assert admin.create_topics([NewTopic(topic)]) == {topic: None}, "without DESCRIBE"
        for right, call in (
            ("DESCRIBE_CONFIGS", lambda: admin.describe_configs([topic])),
            ("ALTER_CONFIGS", lambda: admin.alter_configs({topic: {"retention.ms": 1}})[topic]),
            ("ALTER", lambda: admin.create_partitions({topic: 2})[topic]),
            ("DELETE", lambda: admin.delete_topics([topic])[topic]),
        ):
            try:
                outcome: object = call()
            except BrokerError as error:
                outcome = error
            assert f"user needs {right} on topic '{topic}'" in str(outcome)
        for right in ("ALTER", "ALTER_CONFIGS", "DELETE"):
            allow(strict, "alice", right, topic=topic)
        assert admin.create_partitions({topic: 2}) == {topic: None}
        assert admin.alter_configs({topic: {"retention.ms": 1}}) == {topic: None}
        assert admin.delete_topics([topic]) == {topic: None}
        broker = ConfigResource.broker(1)
        refused = admin.alter_configs({broker: {"log.retention.ms": 1}})[broker]
        assert "the user needs ALTER_CONFIGS on the cluster" in str(refused)
