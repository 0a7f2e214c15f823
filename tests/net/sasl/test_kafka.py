"""Our SASL client against Kafka's own SASL servers and JAAS parser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import AuthenticationError
from spark_kafka_source.net.sasl.jaas import parse_jaas
from spark_kafka_source.net.sasl.logins import PasswordLogin
from spark_kafka_source.net.sasl.oauthbearer import OAuthBearer
from spark_kafka_source.net.sasl.plain import Plain
from spark_kafka_source.net.sasl.scram import Scram
from spark_kafka_source.net.sasl.tokens import RefreshSettings, TokenCache
from spark_kafka_source.secret import Secret
from tests.net.sasl.kafka_server import KafkaServer, run_kafka_server
from tests.net.sasl.tokens_of_tests import Fixed
from tools.java_program import RefusedError

pytestmark = pytest.mark.java

# SASLprep would change the last ones. Kafka's brokers do not change them, and neither do we.
NAMES = ["alice", "a=b,c=2C", "ünï ☃", "I\u00adX\u00aa", "e\u0301\u00a0\u2168"]
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def server(kafka_jars: list[Path]) -> Iterator[KafkaServer]:
    with run_kafka_server(kafka_jars) as server:
        yield server


@pytest.mark.parametrize("text", NAMES)
def test_plain(server: KafkaServer, text: str) -> None:
    assert server.let_in(Plain(PasswordLogin(text, Secret(text))), "PLAIN", text, text) == text
    with pytest.raises(RefusedError, match="Invalid username or password"):
        server.let_in(Plain(PasswordLogin(text, Secret("x"))), "PLAIN", text, text)


@pytest.mark.parametrize("username", ["alice", "a=b,c=2C"])  # Kafka takes ASCII names only
@pytest.mark.parametrize("password", NAMES)
@pytest.mark.parametrize(
    ("name", "hash_name"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")]
)
def test_scram(
    server: KafkaServer, name: str, hash_name: str, username: str, password: str
) -> None:
    client = Scram(name, hash_name, PasswordLogin(username, Secret(password)))
    assert server.let_in(client, name, username, password, "false") == username
    wrong = Scram(name, hash_name, PasswordLogin(username, Secret("x")))
    with pytest.raises(RefusedError, match="Invalid client credentials"):
        server.let_in(wrong, name, username, password, "false")


def test_scram_with_a_delegation_token(server: KafkaServer) -> None:
    login = PasswordLogin("token-id", Secret("hmac=="), token_auth=True)
    client = Scram("SCRAM-SHA-256", "sha256", login)
    assert server.let_in(client, "SCRAM-SHA-256", "token-id", "hmac==", "true") == "owner"


def bearer(text: str, *extensions: tuple[str, str]) -> OAuthBearer:
    return OAuthBearer(TokenCache(Fixed(text), RefreshSettings()), extensions)


def test_oauthbearer(server: KafkaServer) -> None:
    extensions = (("logicalCluster", "lkc-1"), ("identityPoolId", "pool 1, a=b"))
    assert server.let_in(bearer("a.b~c/d==", *extensions), "OAUTHBEARER", "a.b~c/d==") == "owner"
    client = bearer("other")
    with pytest.raises((RefusedError, AuthenticationError), match="invalid_token"):
        server.let_in(client, "OAUTHBEARER", "token")


@settings(max_examples=1000)
@given(
    # In Java the end of a line ends a quoted text. We refuse such a text.
    st.text(st.characters(codec="ascii", exclude_characters="\r\n"), max_size=20)
    | st.text("\\\"'017abn;=/*-.! ", max_size=20),
    st.sampled_from("\"'"),
)
def test_what_is_quoted_is_read_as_java_reads_it(
    server: KafkaServer, text: str, quote: str
) -> None:
    config = f"{MODULE} required a={quote}{text}{quote} b=c-d_e.f;"
    try:
        entry = parse_jaas(Secret(config))
    except ConfigurationError as error:
        assume("gives an option twice" not in str(error))  # Java takes the last one
        with pytest.raises(RefusedError):
            server.jaas(config)
        return
    found = {name: value.reveal() for name, value in entry.options.items()}
    assert server.jaas(config) == (entry.login_module, found)
