"""Queries with typed values: canaries replace the secrets of the schema registry."""

import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack

from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer
from spark_kafka_source.testing.certificates import Certificate
from tests.registry.server import Reply, TestRegistry, error, registry_server, schema, version
from tests.security.canaries import Canaries
from tests.security.leaky_driver import Case
from tests.security.options import (
    ENCRYPTED,
    Options,
    certificate_options,
    options_of,
    trust_options,
)

SUBJECT = "subject-of-leaks"
"""The subject of the reader schema. Tasks ask for the writer schema by its id."""

_TOPIC = "typed"
_WRITER_ID = 2
_ID = {"name": "id", "type": "long"}
_SCHEMA = json.dumps({"type": "record", "name": "Row", "fields": [_ID]})
_LATEST = f"/subjects/{SUBJECT}/versions/latest"
_BY_ID = f"/schemas/ids/{_WRITER_ID}"
_PREFIX = "schema.registry."


def cases(secured: LocalKafka, canaries: Canaries, opened: ExitStack) -> list[Case]:
    """Return all cases. Their topic and registries last as long as `opened`."""
    opened.callback(secured.delete_topic, _TOPIC)
    secured.create_topic(_TOPIC)
    with Producer(secured.bootstrap_servers) as producer:
        records = [Record(value=b"\0\0\0\0\2" + bytes([2 * number])) for number in range(9)]
        producer.send(_TOPIC, 0, records)
    registry = opened.enter_context(registry_server())
    registry.on(_LATEST, version(_SCHEMA, 1))
    registry.on(_BY_ID, schema(_SCHEMA))
    common = options_of(secured, "CLIENT") | {
        "subscribe": _TOPIC,
        "value.format": "avro",
        "value.schema.subject": SUBJECT,
        f"{_PREFIX}timeout.ms": "1000",
    }
    found = [
        *_works(registry, canaries),
        *_denied(registry, canaries, opened),
        *_by_tls(secured, canaries, opened),
        *_fails_locally(registry, canaries),
    ]
    return [
        Case(f"registry-{name}", common | _prefixed(given), works=works)
        for name, given, works in found
    ]


def _prefixed(options: Options) -> Options:
    return {f"{_PREFIX}{name}": text for name, text in options.items()}


Found = Iterator[tuple[str, Options, bool]]


def _works(registry: TestRegistry, canaries: Canaries) -> Found:
    info, password, in_url = (
        f"user:{canaries.new(name)}" for name in ("registry info", "password", "url")
    )
    token = canaries.new("registry token")
    basic = [base64.b64encode(each.encode()).decode() for each in (info, password, in_url)]
    for number, header in enumerate(basic):
        canaries.known(f"registry header {number}", header)
    registry.wanted = frozenset({f"Bearer {token}", *(f"Basic {each}" for each in basic)})
    yield "user-info", {"url": registry.url, "basic.auth.user.info": info}, True
    yield "password", _password(registry.url, password.partition(":")[2]), True
    yield "token", {"url": registry.url, "bearer.auth.token": token}, True
    yield "url", {"url": registry.url.replace("//", f"//{in_url}@")}, True


def _password(url: str, text: str) -> Options:
    return {"url": url, "basic.auth.user": "user", "basic.auth.password": text}


def _denied(registry: TestRegistry, canaries: Canaries, opened: ExitStack) -> Found:
    """Yield cases that fail, on the driver and in tasks. Some registries repeat the secret."""
    wrong = canaries.new("wrong registry password")
    yield "denies", _password(registry.url, wrong), False
    wrong = canaries.new("wrong registry token")
    yield "denies-token", {"url": registry.url, "bearer.auth.token": wrong}, False
    wrong = canaries.new("wrong url password")
    yield "denies-url", {"url": registry.url.replace("//", f"//user:{wrong}@")}, False
    wrong = canaries.new("unreachable registry")
    yield "unreachable", {"url": f"http://user:{wrong}@127.0.0.1:1"}, False
    for name, status in (("tasks-denied", 401), ("tasks-in-outage", 503)):
        text = canaries.new(f"registry {name}")
        server = opened.enter_context(registry_server())
        server.on(_LATEST, version(_SCHEMA, 1))
        server.on(_BY_ID, error(status, message=f"{text} is not what I know"))
        yield name, _password(server.url, text), False
    server = opened.enter_context(registry_server())
    text = canaries.new("registry redirected")
    server.on("*", Reply(302, headers={"Location": f"http://127.0.0.1:1/{text}"}))
    yield "redirected", _password(server.url, text), False


def _by_tls(secured: LocalKafka, canaries: Canaries, opened: ExitStack) -> Found:
    authority = secured.authority
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate)
    own = authority.issue("registry")
    context.load_cert_chain(own.chain, own.key)
    context.verify_mode = ssl.CERT_REQUIRED
    server = opened.enter_context(registry_server(context))
    server.on(_LATEST, version(_SCHEMA, 1))
    server.on(_BY_ID, schema(_SCHEMA))
    certificate = authority.issue("client of a registry")
    canaries.known("registry key.password", certificate.password.reveal())
    canaries.known("registry keystore.key", certificate.key.read_text().splitlines()[1])
    for form in ("inline", ENCRYPTED, "PKCS12"):
        trust = trust_options(authority, "PKCS12" if form == "PKCS12" else "PEM")
        given = _of_tls(trust | certificate_options(certificate, form))
        yield f"mtls-{form}", {"url": server.url, **given}, True
    stranger = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(own.key)}
    yield "no-truststore", {"url": server.url, **stranger}, False
    yield from _wrong_keys(server, certificate, canaries, _of_tls(trust_options(authority, "PEM")))


def _wrong_keys(
    server: TestRegistry, certificate: Certificate, canaries: Canaries, trust: Options
) -> Found:
    without = {"url": server.url, "basic.auth.user.info": f"u:{canaries.new('registry mtls')}"}
    yield "no-certificate", without | trust, False
    for form in (ENCRYPTED, "PKCS12"):
        given = _of_tls(certificate_options(certificate, form))
        name = "ssl.keystore.password" if form == "PKCS12" else "ssl.key.password"
        wrong = {name: canaries.new(f"wrong registry {form}")}
        yield f"wrong-{name}", {"url": server.url, **trust, **given, **wrong}, False
    body = canaries.new("garbage registry key")
    garbage = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    given = _of_tls(certificate_options(certificate, "inline")) | {"ssl.keystore.key": garbage}
    yield "garbage-key", {"url": server.url, **trust, **given}, False


def _of_tls(options: Options) -> Options:
    return {name.removeprefix("kafka."): text for name, text in options.items()}


def _fails_locally(registry: TestRegistry, canaries: Canaries) -> Found:
    new = canaries.new
    url = {"url": registry.url}
    yield "twice", url | {"basic.auth.user.info": f"u:{new('ri')}", "bearer.auth.token": "t"}, False
    yield "no-colon", url | {"basic.auth.user.info": new("registry without a colon")}, False
    yield "no-user", url | {"basic.auth.password": new("registry without a user")}, False
    yield "no-token", url | {"bearer.auth.token": f"Bearer {new('registry Bearer')}"}, False
    slip = {"basic.auth.pasword": new("slip basic.auth.pasword")}
    yield "slip", url | slip, False
    astray = {"basic.auth.user": f"u:{new('password in registry user')}"}
    yield "colon", url | astray | {"basic.auth.password": "p"}, False
    yield "no-url", {"url": new("registry url")}, False
    yield "no-scheme", {"url": f"user:{new('registry scheme')}@localhost:1"}, False
    yield "no-port", {"url": f"http://user:{new('registry port')}@localhost:x"}, False
    yield "query", {"url": f"http://localhost:1/?password={new('registry query')}"}, False
