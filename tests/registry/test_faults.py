"""Registries with bad, late or missing answers, and the errors about them."""

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from spark_kafka_source.net import Retry, TlsError, run
from spark_kafka_source.registry import (
    IncompatibleSchemaError,
    InvalidSchemaError,
    RegistryClient,
    RegistryDeniedError,
    RegistryError,
    RegistryUnavailableError,
    SchemaNotFoundError,
)
from spark_kafka_source.registry import client as client_module
from spark_kafka_source.registry import server as server_module
from spark_kafka_source.registry.server import MOST_BYTES
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType
from tests.client.clock import Clock, deadlines_by
from tests.registry.conftest import MakeClient, config
from tests.registry.server import Reply, TestRegistry, Then, error, registry_server, schema
from tests.traced import traced
from tools.certificates import Certified, authority
from tools.ports import LOOPBACK, black_hole, refused_port

LONG = SchemaText(SchemaType.AVRO, '"long"')
CANARY = "hunter2-canary"
SELDOM = Retry(backoff_ms=10_000, backoff_max_ms=10_000)
SOON = "300"
"""A short timeout in ms, for registries that do not answer in time."""
LATER = ("3000", "30000")
"""Longer ones, for a busy machine that cannot do in time what comes before."""


def raw(text: str | bytes, then: Then = Then.CLOSE) -> Reply:
    return Reply(raw=text.encode() if isinstance(text, str) else text, then=then)


def headed(body: bytes, *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode() + body


# -- errors with a retry ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 599])
def test_what_can_heal_is_tried_again(
    registry: TestRegistry, client: RegistryClient, status: int
) -> None:
    registry.on("*", *[error(status, 50001)] * 3, schema())
    assert client.schema(7) == LONG
    assert len(registry.asked) == 4


@pytest.mark.parametrize(
    "reply",
    [
        raw(headed(b'{"schema"', "Content-Length: 20")),
        raw(headed(b"5\r\n{}", "Transfer-Encoding: chunked")),
        raw(b""),
        raw(b"\x15\x03\x03\0\2\2\x46"),
        raw("HTTP/9 what\r\n\r\n"),
        raw("HTTP/1.1 abc\r\n\r\n"),
    ],
)
def test_an_answer_that_is_cut_is_asked_for_again(
    registry: TestRegistry, client: RegistryClient, reply: Reply
) -> None:
    registry.on("*", reply, schema())
    assert client.schema(7) == LONG


def test_another_url_is_asked_and_then_stays(
    registry: TestRegistry, other: TestRegistry, client_of: MakeClient
) -> None:
    registry.on("*", error(503))
    other.on("*", schema())
    client = client_of(f"{registry.url},{other.url}")
    assert [client.schema(id) for id in (1, 2, 3)] == [LONG] * 3
    assert (len(registry.asked), len(other.asked)) == (1, 3)
    # Repeat until the client picks the failing one.
    other.on("*", error(503))
    registry.on("*", schema())
    assert client.schema(4) == LONG
    assert (len(registry.asked), len(other.asked)) == (2, 4)


def test_one_that_is_silent_leaves_time_for_another(
    registry: TestRegistry, client_of: MakeClient
) -> None:
    registry.on("*", schema())
    with black_hole() as silent:
        for timeout_ms in ("2000", *LATER):
            client = client_of(f"http://{silent},{registry.url}", timeout_ms=timeout_ms)
            with suppress(RegistryUnavailableError):
                assert client.schema(7) == LONG
                return
    pytest.fail("the other one is not asked in time")


# -- errors without a retry ------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Only pauses advance this clock, so that each answer is in time."""
    deadlines_by(clock := Clock(), monkeypatch)
    monkeypatch.setattr(client_module, "run", partial(run, block=clock.block))
    return clock


def unavailable(client: RegistryClient) -> str:
    with pytest.raises(RegistryUnavailableError) as caught:
        client.schema(7)
    assert caught.value.retriable
    return str(caught.value)


def test_when_time_is_up_it_says_what_each_url_said(registry: TestRegistry, clock: Clock) -> None:
    registry.on("*", error(503, 50002, "no leader"))
    with refused_port() as port:
        known = config(f"{registry.url},http://{LOOPBACK}:{port}", timeout_ms="60000")
        with closing(RegistryClient(known, retry=SELDOM)) as client:
            text = unavailable(client)
    assert text.startswith("The registry is not available: the schema with the id 7: no success")
    assert "within 60000 ms" in text
    assert 40 < clock.now_seconds <= 60
    where = registry.url.removeprefix("http://")
    assert f"{where}: status 503, 'no leader'; {LOOPBACK}:{port}" in text
    assert "refused" in text
    assert len(registry.asked) > 3


def test_nobody_answers(client_of: MakeClient) -> None:
    with black_hole() as silent:
        for timeout_ms in (SOON, *LATER):
            text = unavailable(client_of(f"http://{silent}", timeout_ms=timeout_ms))
            if "waiting for an answer" in text:
                break
    assert f"{silent}: timed out waiting for an answer" in text


@pytest.mark.parametrize(
    "reply",
    [
        raw(headed(b"{", "Content-Length: 20"), Then.HANG),
        raw("HTTP/1.1 200 OK\r\nX: ", Then.HANG),
        raw("HTTP/1.1 100 Continue\r\n\r\n", Then.HANG),
        raw("", Then.HANG),
    ],
)
def test_an_answer_that_stops_is_not_waited_for(
    registry: TestRegistry, client_of: MakeClient, reply: Reply
) -> None:
    registry.on("*", reply)
    assert "timed out" in unavailable(client_of(registry.url, timeout_ms=SOON))


@pytest.mark.parametrize(
    "endless",
    [
        raw("HTTP/1.1 100 Continue\r\n\r\n", Then.REPEAT),
        raw(headed(b"-1\r\n" + bytes(1 << 16), "Transfer-Encoding: chunked"), Then.REPEAT),
        raw(headed(bytes(1 << 16)), Then.REPEAT),
    ],
    ids=["headers", "a chunk", "a body"],
)
def test_an_answer_without_end_is_cut(
    registry: TestRegistry,
    client_of: MakeClient,
    endless: Reply,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most_bytes = 1 << 18
    monkeypatch.setattr(server_module, "MOST_BYTES", most_bytes)
    registry.on("*", endless)
    client = client_of(registry.url, timeout_ms="20000")
    with (
        traced() as memory,
        pytest.raises(RegistryError, match=f"an answer of more than {most_bytes} bytes"),
    ):
        client.schema(7)
    assert memory.peak_bytes < 16 * most_bytes


def test_a_huge_answer_is_not_read(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("*", raw(headed(b"", f"Content-Length: {1 << 40}"), Then.HANG))
    with pytest.raises(RegistryError, match=f"an answer of more than {MOST_BYTES} bytes"):
        client.schema(7)
    assert len(registry.asked) == 1


def test_who_is_not_known_is_told_which_option(
    registry: TestRegistry, client_of: MakeClient
) -> None:
    registry.on("*", error(401, message=f"who is {CANARY}?"))
    with pytest.raises(
        RegistryDeniedError, match=r"Give credentials by 'schema.registry.basic.auth"
    ):
        client_of(registry.url).schema(7)
    client = client_of(registry.url, basic_auth_user="me", basic_auth_password=CANARY)
    with pytest.raises(RegistryDeniedError) as caught:
        client.schema(7)
    expected = "Check 'schema.registry.basic.auth.user.info' or 'schema.registry.bearer.auth.token'"
    assert str(caught.value).endswith(f"the id 7: status 401, 'who is ...?'. {expected}")
    registry.on("*", error(403))
    with pytest.raises(RegistryDeniedError, match=r"403, 'no'. Grant the right in the registry"):
        client.schema(7)
    # One request each: a wrong password could lock an account.
    assert len(registry.asked) == 3


@pytest.mark.parametrize("encoded", [CANARY, "bWU6aHVudGVyMi1jYW5hcnk="])
def test_what_we_told_it_is_in_no_text(
    registry: TestRegistry, client_of: MakeClient, clock: Clock, encoded: str
) -> None:
    registry.on("*", error(418, message="." * 995 + encoded))
    with pytest.raises(RegistryError) as cut:
        client_of(registry.url.replace("//", f"//me:{CANARY}@")).schema(7)
    assert encoded[:3] not in str(cut.value)
    for status in (401, 404, 409, 422, 418, 503):
        registry.on("*", error(status, message=f"You said {encoded}"))
        known = config(registry.url.replace("//", f"//me:{CANARY}@"), timeout_ms="60000")
        with (
            closing(RegistryClient(known, retry=SELDOM)) as client,
            pytest.raises(RegistryError, match=r"You said \.\.\.") as caught,
        ):
            client.schema(7)
        assert encoded not in f"{caught.value!r}{caught.value.__cause__}"
        assert f"{LOOPBACK}:" in str(caught.value)


def test_another_404_is_no_word_of_a_registry(
    registry: TestRegistry, client: RegistryClient
) -> None:
    """Otherwise a typo in the url's path would make all rows malformed."""
    for reply in (Reply(404), error(404), error(404, message="HTTP 404 Not Found")):
        registry.on("*", reply)
        with pytest.raises(RegistryError, match=r"Check 'schema.registry.url', its path too") as no:
            client.schema(7)
        assert not isinstance(no.value, SchemaNotFoundError)


@pytest.mark.parametrize(
    ("reply", "kind", "text"),
    [
        (error(409, 409, "reader's x has no default"), IncompatibleSchemaError, "x has no default"),
        (error(422, 42201, "Invalid schema"), InvalidSchemaError, "status 422, 'Invalid schema'"),
        (error(418), RegistryError, "status 418, 'no'. Check 'schema.registry.url'"),
    ],
)
def test_a_schema_that_is_refused(
    registry: TestRegistry,
    client: RegistryClient,
    reply: Reply,
    kind: type[RegistryError],
    text: str,
) -> None:
    registry.on("*", reply)
    with pytest.raises(kind) as caught:
        client.register("s", LONG)
    assert "registering a schema of subject 's'" in str(caught.value)
    assert text in str(caught.value)
    assert len(registry.asked) == 1


# -- malformed answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"<html>", "the answer is no JSON object"),
        (b"", "the answer is no JSON object"),
        (b"[]", "the answer is no JSON object"),
        (b"[" * 100_000, "the answer is no JSON object"),
        (b'{"schema": "\xff"}', "the answer is no JSON object"),
        (b'{"x": ' + b"9" * 10_000 + b"}", "the answer is no JSON object"),
        (b"{}", "the answer is no JSON object"),
        (b'{"schema": 1}', "its field 'schema' is not a text"),
        (b'{"schema": null}', "its field 'schema' is not a text"),
        (b'{"schema": "1", "schemaType": 1}', "its field 'schemaType' is not a text"),
        (b'{"schema": "1", "references": {}}', "its field 'references' is not a list"),
        (b'{"schema": "1", "references": [1]}', "its field 'references' is not a list"),
        (b'{"schema": "1", "references": [{"name": 1}]}', "its field 'name' is not a text"),
        (
            b'{"schema": "1", "references": [{"name": "a", "subject": "b", "version": true}]}',
            "its field 'version' is not a whole number",
        ),
    ],
)
def test_wrong_types(
    registry: TestRegistry, client: RegistryClient, body: bytes, text: str
) -> None:
    registry.on("*", raw(headed(body, f"Content-Length: {len(body)}"), Then.NOTHING))
    with pytest.raises(RegistryError, match=text) as caught:
        client.schema(7)
    assert "the schema with the id 7: " in str(caught.value)
    assert len(registry.asked) == 1


@pytest.mark.parametrize("id", ["7", None, -1, 1 << 31, 1.5, True])
def test_wrong_ids(registry: TestRegistry, client: RegistryClient, id: object) -> None:
    body = {"schema": "1", "id": id, "version": 1}
    registry.on("*", Reply(json=body))
    for ask in (
        lambda: client.by_subject("s"),
        lambda: client.register("s", LONG),
        lambda: client.look_up("s", LONG),
    ):
        with pytest.raises(RegistryError, match="its field 'id' is not a whole number of 31 bits"):
            ask()


def test_a_type_that_nobody_reads_is_the_schemas_fault(
    registry: TestRegistry, client: RegistryClient
) -> None:
    registry.on("*", schema(schemaType="XML" * 1000))
    with pytest.raises(SchemaError, match=r"There are AVRO, JSON, PROTOBUF") as caught:
        client.schema(7)
    assert len(str(caught.value)) < 500
    registry.on("*", Reply(json={"schema": "1", "schemaType": None, "references": None}))
    assert client.schema(8) == SchemaText(SchemaType.AVRO, "1")


# -- redirections ----------------------------------------------------------------------------------


def moved(location: str, status: int = 307) -> Reply:
    return Reply(status, headers={"Location": location})


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_on_the_same_server_is_followed(
    registry: TestRegistry, client_of: MakeClient, status: int
) -> None:
    registry.on("/subjects/s/versions", moved(f"{registry.url}/a?b=c", status))
    registry.on("/a?b=c", moved("/d", status))
    registry.on("/d", Reply(json={"id": 5}))
    client = client_of(registry.url, bearer_auth_token="t")
    assert client.register("s", LONG) == 5
    assert [(each.method, each.json["schema"]) for each in registry.asked] == [
        ("POST", '"long"')
    ] * 3
    assert len(registry.links) == 1


def test_another_server_is_not_asked_and_not_shown_anything(
    registry: TestRegistry, other: TestRegistry, client_of: MakeClient
) -> None:
    registry.on("/schemas/ids/7", Reply())
    port = registry.url.rpartition(":")[2]
    client = client_of(registry.url, bearer_auth_token=CANARY)
    for location in (
        f"{other.url}/schemas/ids/7",
        f"//{other.url.removeprefix('http://')}/x",
        f"https://{LOOPBACK}:{port}/schemas/ids/7",
        f"http://localhost:{port}/x",
        f"http://{LOOPBACK}/x",
        "",
        "relative",
        "/a b",
        "/a\xe9",
        "http://[::1",
        f"{registry.url}@evil/x",
    ):
        registry.on("*", moved(location))
        with pytest.raises(RegistryError, match="redirects to another server, which is not") as no:
            client.schema(8)
        assert "'schema.registry.url'" in str(no.value)
        assert "evil" not in str(no.value)
    assert not other.asked


def test_redirections_come_to_an_end(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("*", moved("/again"))
    with pytest.raises(RegistryError, match="more than 5 redirections"):
        client.schema(7)
    assert len(registry.asked) == 6


# -- proxies ---------------------------------------------------------------------------------------


def test_a_proxy_of_the_environment_is_asked(
    registry: TestRegistry, client_of: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", registry.url.replace("//", f"//me:{CANARY}@"))
    client = client_of("http://registry.invalid:8081/x")
    registry.on("http://registry.invalid:8081/x/schemas/ids/7", schema())
    assert client.schema(7) == LONG
    registry.on("*", error(403))
    through = registry.url.removeprefix("http://")
    said = f"registry.invalid:8081 through the proxy {through} .'HTTP_PROXY'.: the schema with the"
    with pytest.raises(RegistryDeniedError, match=said) as caught:
        client.schema(8)
    assert CANARY not in str(caught.value)


# -- TLS -------------------------------------------------------------------------------------------


@pytest.fixture
def trusted(ca: Certified, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    path.write_text(ca.certificate_pem)
    return str(path)


def tls_error(client: RegistryClient) -> str:
    with pytest.raises(TlsError) as caught:
        client.schema(7)
    text = str(caught.value)
    assert "broker" not in text
    assert "'kafka." not in text
    return text


def test_tls(server: Certified, trusted: str, tmp_path: Path, client_of: MakeClient) -> None:
    with registry_server(server.server_context(tmp_path)) as secured:
        secured.on("*", schema())
        client = client_of(secured.url, ssl_truststore_location=trusted)
        assert [client.schema(id) for id in (1, 2)] == [LONG, LONG]
        assert len(secured.links) == 1


def test_a_certificate_that_nobody_vouches_for(
    server: Certified, tmp_path: Path, client_of: MakeClient
) -> None:
    stranger = tmp_path / "stranger.pem"
    stranger.write_text(authority("a stranger").certificate_pem)
    with registry_server(server.server_context(tmp_path)) as secured:
        text = tls_error(client_of(secured.url, ssl_truststore_location=str(stranger)))
        assert "vouches for the registry's certificate" in text
        assert "'schema.registry.ssl.truststore.location'" in text
        assert not secured.asked


@pytest.fixture
def mutual(ca: Certified, server: Certified, tmp_path: Path) -> Iterator[TestRegistry]:
    """Run a registry that accepts only clients with a certificate of the authority."""
    with registry_server(server.server_context(tmp_path, trusts=ca)) as secured:
        yield secured


def test_mutual_tls(
    mutual: TestRegistry, me: Certified, trusted: str, client_of: MakeClient
) -> None:
    mutual.on("*", schema())
    text = tls_error(client_of(mutual.url, ssl_truststore_location=trusted))
    assert "the registry demands a client certificate" in text
    assert "'schema.registry.ssl.keystore.location'" in text
    mine = {
        "ssl_keystore_certificate_chain": me.certificate_pem,
        "ssl_keystore_key": me.key_pem(),
    }
    client = client_of(mutual.url, ssl_truststore_location=trusted, **mine)
    assert client.schema(7) == LONG


def test_tls_to_who_speaks_none(
    registry: TestRegistry, trusted: str, client_of: MakeClient
) -> None:
    url = registry.url.replace("http:", "https:")
    text = tls_error(client_of(url, ssl_truststore_location=trusted))
    assert "does not speak TLS there" in text
    assert "or a url of http, in 'schema.registry.url'" in text


def test_a_store_that_is_gone_later_sends_nothing_without_tls(
    server: Certified, trusted: str, tmp_path: Path, client_of: MakeClient
) -> None:
    """The client rebuilds its TLS context after a file's change, which may fail."""
    with registry_server(server.server_context(tmp_path)) as secured:
        secured.on("*", schema())
        client = client_of(secured.url, ssl_truststore_location=trusted)
        Path(trusted).write_text("no certificate")
        for _ in range(2):
            with pytest.raises(Exception, match=r"'schema.registry.ssl.truststore.location': '/"):
                client.schema(7)
        assert not secured.asked


def test_the_server_of_the_tests_answers_as_it_is_told(registry: TestRegistry) -> None:
    registry.on("/x", Reply(json=1), Reply(json=2))
    assert [json.dumps(registry.reply("/x").json) for _ in range(3)] == ["1", "2", "2"]
    assert registry.reply("/y").status == 404
