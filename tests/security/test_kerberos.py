"""Kerberos with a real KDC, a real broker with GSSAPI, and the system's libraries."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_kafka_source.net import AuthenticationError
from spark_kafka_source.testing import LocalKafka, Security
from spark_kafka_source.testing.local_kafka import BROKER_JAVA_OPTIONS
from tests.security.kdc import REALM, Kdc, kdc, missing_parts
from tests.security.options import Options
from tests.security.reading import read
from tests.security.servers import counting
from tests.testing.traffic import produce
from tools.traffic import wait_until

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.kerberos,
    pytest.mark.skipif(bool(missing_parts()), reason=missing_parts()),
]

BROKER, ALICE = "kafka/127.0.0.1", "alice"
VALUES = [b"a", b"b", b"c"]
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
LISTENER = "listener.name.sasl_plaintext"
LOOK_AT = "'kafka.sasl.jaas.config'"


@dataclass(frozen=True)
class Realm:
    """A KDC, alice's keytab, and a broker that accepts tickets."""

    kdc: Kdc
    keytab: Path
    kafka: LocalKafka


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with kdc(tmp_path_factory.mktemp("kdc")) as made:
        jaas = f'{MODULE} useKeyTab=true storeKey=true keyTab="{made.keytab(BROKER)}"'
        properties = {
            f"{LISTENER}.sasl.enabled.mechanisms": "GSSAPI",
            f"{LISTENER}.gssapi.sasl.jaas.config": f'{jaas} principal="{BROKER}@{REALM}";',
            f"{LISTENER}.sasl.kerberos.service.name": "kafka",
        }
        where = f"-Djava.security.krb5.conf={made.configuration}"
        java_options = (*BROKER_JAVA_OPTIONS, where)
        keytab = made.keytab(ALICE)
        with LocalKafka(
            security=Security(), properties=properties, java_options=java_options
        ) as kafka:
            kafka.create_topic("t")
            produce(kafka.bootstrap_servers, "t", VALUES)
            yield Realm(made, keytab, kafka)


@pytest.fixture(autouse=True)
def _environment(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in realm.kdc.environment.items():
        monkeypatch.setenv(name, value)


def options(realm: Realm, jaas: str = "", **more: str) -> Options:
    named = {f"kafka.sasl.{name.replace('_', '.')}": value for name, value in more.items()}
    given = {"kafka.sasl.jaas.config": f"{MODULE} {jaas};"} if jaas else {}
    return {
        "kafka.bootstrap.servers": realm.kafka.bootstrap_servers_of("SASL_PLAINTEXT"),
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "GSSAPI",
        "kafka.sasl.kerberos.service.name": "kafka",
        "subscribe": "t",
        **given,
        **named,
    }


def with_keytab(realm: Realm, keytab: Path | None = None, principal: str = ALICE) -> Options:
    name = principal if "@" in principal else f"{principal}@{REALM}"
    path = keytab or realm.keytab
    return options(realm, f'useKeyTab=true storeKey=true keyTab="{path}" principal="{name}"')


# -- logins ----------------------------------------------------------------------------------------


def test_the_keys_of_a_keytab(realm: Realm) -> None:
    assert list(read(with_keytab(realm))) == VALUES


def test_tickets_of_the_default_cache(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.kdc.tickets(ALICE, realm.keytab)))
    assert list(read(options(realm))) == VALUES


def test_tickets_of_a_cache_that_is_named(realm: Realm) -> None:
    cache = realm.kdc.tickets(ALICE, realm.keytab)
    assert list(read(options(realm, f'useTicketCache=true ticketCache="{cache}"'))) == VALUES


# -- failed logins ---------------------------------------------------------------------------------


def expired(realm: Realm) -> Options:
    cache = realm.kdc.tickets(ALICE, realm.keytab, "-l", "1s")
    ends_at_seconds = time.monotonic() + 2.5
    wait_until(lambda: time.monotonic() > ends_at_seconds)
    return options(realm, f'useTicketCache=true ticketCache="{cache}"')


def void_keys(realm: Realm) -> Options:
    old = realm.kdc.keytab("bob")
    realm.kdc.keytab("bob")
    return with_keytab(realm, old, "bob")


REFUSED: dict[str, tuple[Callable[[Realm], Options], str]] = {
    "no ticket": (options, "No Kerberos credentials available"),
    "an expired ticket": (expired, "expired"),
    "a realm that there is not": (
        lambda realm: with_keytab(realm, principal=f"{ALICE}@OTHER.EXAMPLE"),
        "as 'alice@OTHER.EXAMPLE' by the keytab",
    ),
    "a principal that is not in the keytab": (
        lambda realm: with_keytab(realm, principal="mallory"),
        f"as 'mallory@{REALM}' by the keytab",
    ),
    "a keytab that is not there": (
        lambda realm: with_keytab(realm, Path("/nowhere/alice.keytab")),
        "the keytab '/nowhere/alice.keytab' cannot be read: No such file",
    ),
    "keys that are void": (void_keys, f"as 'bob@{REALM}' by the keytab"),
    "a service that there is not": (
        lambda realm: with_keytab(realm) | {"kafka.sasl.kerberos.service.name": "other"},
        "other@127.0.0.1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(realm: Realm, name: str) -> None:
    made, said = REFUSED[name]
    found = made(realm)
    with counting(found["kafka.bootstrap.servers"]) as server:
        found["kafka.bootstrap.servers"] = ",".join([server.address] * 2)
        with pytest.raises(AuthenticationError) as caught:
            list(read(found))
    print(f"{name}: {caught.value}")
    assert said in str(caught.value)
    assert LOOK_AT in str(caught.value)
    assert server.connections == 1
