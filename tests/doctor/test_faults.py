"""Each fault that the doctor can name, caused by the test, and secrets, which it never shows."""

import json
import socket
import threading
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.command_line.main import main
from spark_kafka_source.doctor import brokers, examination
from spark_kafka_source.doctor import registry_and_clocks as clocks
from spark_kafka_source.errors import error_named
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp
from spark_kafka_source.net.security import TlsSettings
from spark_kafka_source.net.tls.certificates import TEST_AUTHORITY, client_certificate, days_until
from spark_kafka_source.protocol import Versions
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.group_admin import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest
from spark_kafka_source.secret import Secret
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.admin.conftest import address, fill
from tests.doctor.rows import Examine, of, wrong
from tests.registry.server import Reply, registry_server
from tools.certificates import Certified, authority, certified_by
from tools.ports import LOOPBACK, black_hole, refused_port

READ_ONLY = 1 << 3 | 1 << 8
TOPIC_OF_T = ("--topic", "t")


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    fill(broker)
    return broker


def described(broker: MemoryBroker, **fields: Any) -> MetadataResponse:
    partition: dict[str, Any] = {"leader_id": 0, "replica_nodes": [0], "isr_nodes": [0]}
    partition |= fields
    rights = partition.pop("rights", READ_ONLY | 1 << 4)
    topic = MetadataResponseTopic(0, "t", partitions=[MetadataResponsePartition(0, 0, **partition)])
    topic.topic_authorized_operations = rights
    where = MetadataResponseBroker(0, LOOPBACK, broker.address().port)
    return MetadataResponse(brokers=[where], topics=[topic])


def with_topic(broker: MemoryBroker, **fields: Any) -> None:
    def answer(request: Any) -> Any:
        return described(broker, **fields) if request.topics else Action.HANDLE

    broker.control(MetadataRequest, answer, times=None)


# -- brokers ---------------------------------------------------------------------------------------


def test_a_healthy_cluster(broker: MemoryBroker, examined: Examine) -> None:
    with_topic(broker)
    rows = examined(address(broker), *TOPIC_OF_T, "--group", "g", "--transactional-id", "x")
    assert not [row for row in rows if row["verdict"] == "wrong"]
    assert of(rows, "round trip")["took_ms"] is not None
    asked = {type(each.request) for each in broker.seen}
    assert not asked & {FindCoordinatorRequest, InitProducerIdRequest}
    metadata = [each.request for each in broker.seen if isinstance(each.request, MetadataRequest)]
    assert not any(each.allow_auto_topic_creation for each in metadata)


def test_a_table_for_people(broker: MemoryBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-b", address(broker), "--topic", "nope"]) == 1
    out = capsys.readouterr().out
    assert "✓   connect" in out
    assert "✗   topic" in out


def test_a_port_that_refuses(examined: Examine) -> None:
    with refused_port() as port:
        rows = examined(f"{LOOPBACK}:{port}", *TOPIC_OF_T)
    found = wrong(rows)
    assert (found["check"], found["option"]) == ("connect", "-b")
    assert of(rows, "login")["found"] == "not checked: 'connect' failed"
    assert of(rows, "topic")["found"].startswith("not checked")


def test_a_name_that_nobody_has(examined: Examine) -> None:
    found = wrong(examined("no-such-host.invalid:9092"))
    assert found["check"] == "connect"
    assert "cannot be resolved" in found["found"]


def test_a_silent_broker_does_not_hide_the_others(broker: MemoryBroker, examined: Examine) -> None:
    began_seconds = time.monotonic()
    with black_hole() as silent:
        rows = examined(f"{silent},{address(broker)}", *TOPIC_OF_T)
    assert time.monotonic() - began_seconds < 15  # Twice the timeout would be 16 s.
    found = wrong(rows)
    assert (found["check"], found["subject"]) == ("login", str(silent))
    assert found["option"] == "security.protocol"
    assert of(rows, "leaders")["verdict"] == "ok"


def test_a_broker_that_only_the_cluster_names(broker: MemoryBroker, examined: Examine) -> None:
    with refused_port() as port:
        where = [
            MetadataResponseBroker(0, LOOPBACK, broker.address().port),
            MetadataResponseBroker(1, LOOPBACK, port),
        ]
        broker.control(MetadataRequest, MetadataResponse(brokers=where), times=None)
        found = wrong(examined(address(broker)))
    assert found["subject"].endswith(f":{port}")
    assert found["option"] == "advertised.listeners"
    assert "advertised.listeners" in found["remedy"]


def test_brokers_that_advertise_one_address(broker: MemoryBroker, examined: Examine) -> None:
    port = broker.address().port
    where = [MetadataResponseBroker(each, LOOPBACK, port) for each in (0, 2, 3)]
    broker.control(MetadataRequest, MetadataResponse(brokers=where), times=None)
    found = wrong(examined(address(broker)))
    assert (found["check"], found["option"]) == ("cluster", "advertised.listeners")
    assert "brokers 0, 2, 3 advertise this same address" in found["found"]


def test_a_leader_that_is_silent_does_not_hide_the_rights(
    broker: MemoryBroker, examined: Examine
) -> None:
    broker.control(ListOffsetsRequest, Action.SILENCE, times=None)
    began_seconds = time.monotonic()
    rows = examined(address(broker), *TOPIC_OF_T, "--group", "g")
    assert time.monotonic() - began_seconds < 15  # Twice the timeout would be 16 s.
    assert of(rows, "group right")["found"].startswith("DESCRIBE is granted")
    assert of(rows, "clock")["verdict"] == "unknown"


def test_brokers_beyond_the_most_are_counted(
    broker: MemoryBroker, examined: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "_MOST_BROKERS", 1)
    with refused_port() as port:
        where = [MetadataResponseBroker(0, LOOPBACK, broker.address().port)]
        where += [MetadataResponseBroker(each, f"127.0.0.{each}", port) for each in (2, 3, 4)]
        broker.control(MetadataRequest, MetadataResponse(brokers=where), times=None)
        rows = examined(address(broker))
    assert wrong(rows)["subject"] == f"127.0.0.2:{port}"
    found = of(rows, "connect", "and others")
    assert found["verdict"] == "unknown"
    assert found["found"] == "not checked: 2 more brokers of the cluster"


def test_a_broker_that_hangs_up_after_its_versions(broker: MemoryBroker, examined: Examine) -> None:
    broker.control(MetadataRequest, Action.CLOSE, times=None)
    found = wrong(examined(address(broker)))
    assert found["check"] == "round trip"


def test_a_broker_without_versions(broker: MemoryBroker, examined: Examine) -> None:
    broker.control(ApiVersionsRequest, Action.CLOSE, times=None)
    assert wrong(examined(address(broker)))["check"] == "login"


@pytest.mark.parametrize(
    ("spoken", "text"),
    [
        (Versions(0, 3), "older than Apache Kafka 2.1"),
        (Versions(90, 99), "newer than this package knows"),
    ],
)
def test_a_broker_of_another_age(examined: Examine, spoken: Versions, text: str) -> None:
    with MemoryBroker(versions={FetchRequest.KEY: spoken}) as broker:
        rows = examined(address(broker))
    found = wrong(rows)
    assert (found["check"], found["option"]) == ("versions", "-b")
    assert text in found["found"]
    assert of(rows, "round trip")["found"] == "not checked: 'versions' failed"


def test_a_broker_that_does_not_tell_the_cluster(broker: MemoryBroker, examined: Examine) -> None:
    trips = iter([Action.HANDLE])
    broker.control(MetadataRequest, lambda _: next(trips, Action.CLOSE), times=None)
    found = wrong(examined(address(broker)))
    assert (found["check"], found["option"]) == ("cluster", "-b")


def test_a_resolver_that_is_silent(
    broker: MemoryBroker, examined: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, resolve = threading.Event(), socket.getaddrinfo

    def wait(host: str, *given: Any, **named: Any) -> Any:
        if host == "nowhere.invalid":
            ended.wait(60)
        return resolve(host, *given, **named)

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    for seconds in ("3", "30"):  # A busy machine needs longer to check the other one.
        rows = examined(f"nowhere.invalid:9092,{address(broker)}", "--timeout", seconds)
        if any((row["check"], row["verdict"]) == ("cluster", "ok") for row in rows):
            break
    ended.set()
    found = wrong(rows)
    assert (found["check"], found["subject"]) == ("connect", "nowhere.invalid:9092")
    assert (found["option"], found["found"]) == ("-b", "no result in time")
    assert of(rows, "cluster")["verdict"] == "ok"


# -- TLS and login ---------------------------------------------------------------------------------


@pytest.fixture
def five_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the limit to five days: certificates of these tests are valid for ten days at most."""
    monkeypatch.setattr(brokers, "SOON_DAYS", 5)


@pytest.fixture
def ca() -> Certified:
    return authority()


@pytest.mark.usefixtures("five_days")
@pytest.mark.parametrize(("days", "verdict"), [(9, "ok"), (2, "wrong")])
def test_the_days_of_a_certificate(
    ca: Certified, examined: Examine, tmp_path: Path, days: int, verdict: str
) -> None:
    server = certified_by(ca, LOOPBACK, days_left=days)
    with MemoryBroker(tls=server.server_context(tmp_path)) as broker:
        trusted = ca.certificate_pem
        rows = examined(
            address(broker), security_protocol="SSL", ssl_truststore_certificates=trusted
        )
    found = of(rows, "tls")
    assert found["verdict"] == verdict
    assert "'someone' by 'an authority of the tests'" in found["found"]
    assert f"expires in {days - 1} days" in found["found"]
    assert of(rows, "login")["verdict"] == "ok"


def unverified(ca: Certified) -> dict[str, tuple[Certified, str, str]]:
    option = "ssl.truststore.location"
    return {
        "unknown authority": (certified_by(authority("another"), LOOPBACK), "no authority", option),
        "expired": (certified_by(ca, LOOPBACK, days_left=-1), "has expired", ""),
        "another name": (certified_by(ca, "elsewhere"), "for another name", "-b"),
    }


@pytest.mark.parametrize("fault", ["unknown authority", "expired", "another name"])
def test_a_certificate_that_is_refused_here(
    ca: Certified, examined: Examine, tmp_path: Path, fault: str
) -> None:
    server, text, option = unverified(ca)[fault]
    with MemoryBroker(tls=server.server_context(tmp_path)) as broker:
        trusted = ca.certificate_pem
        rows = examined(
            address(broker), security_protocol="SSL", ssl_truststore_certificates=trusted
        )
    found = wrong(rows)
    assert found["check"] == "tls"
    assert text in found["found"]
    assert found["option"] == (option or "ssl.truststore.location")
    assert of(rows, "login")["found"] == "not checked: 'tls' failed"


def test_a_client_certificate_that_is_missing(
    ca: Certified, examined: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "SOON_DAYS", 0)
    server = certified_by(ca, LOOPBACK)
    with MemoryBroker(tls=server.server_context(tmp_path, trusts=ca)) as broker:
        found = wrong(
            examined(
                address(broker),
                security_protocol="SSL",
                ssl_truststore_certificates=ca.certificate_pem,
            )
        )
    assert found["option"] == "ssl.keystore.location"


def test_a_client_certificate_that_the_broker_refuses(
    ca: Certified, examined: Examine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "SOON_DAYS", 0)
    me = certified_by(authority("another"))
    with MemoryBroker(tls=certified_by(ca, LOOPBACK).server_context(tmp_path, trusts=ca)) as broker:
        found = wrong(
            examined(
                address(broker),
                security_protocol="SSL",
                ssl_truststore_certificates=ca.certificate_pem,
                ssl_keystore_certificate_chain=me.certificate_pem,
                ssl_keystore_key=me.key_pem(),
            )
        )
    assert (found["check"], found["option"]) == ("tls", "ssl.keystore.location")
    assert "refuse" in found["found"]


def test_a_client_certificate_that_expires_soon(
    broker: MemoryBroker, ca: Certified, examined: Examine, tmp_path: Path
) -> None:
    me = certified_by(ca, days_left=3)
    rows = examined(
        address(broker),
        security_protocol="SSL",
        ssl_truststore_certificates=ca.certificate_pem,
        ssl_keystore_certificate_chain=me.certificate_pem,
        ssl_keystore_key=me.key_pem(),
    )
    found = of(rows, "client certificate")
    assert (found["verdict"], found["option"]) == ("wrong", "ssl.keystore.location")
    assert found["found"] == "it expires in 2 days"
    tls = of(rows, "tls")  # This port has no TLS.
    assert "does not speak TLS" in tls["found"]
    assert tls["option"] == "security.protocol"


def test_the_expiry_of_a_certificate_is_that_of_cryptography(ca: Certified) -> None:
    me = certified_by(ca, days_left=-3)
    found = client_certificate(
        TlsSettings(
            ssl_keystore_certificate_chain=Secret(me.certificate_pem),
            ssl_keystore_key=Secret(me.key_pem()),
        )
    )
    assert found.expires_at_seconds == me.certificate.not_valid_after_utc.timestamp()
    assert days_until(found.expires_at_seconds) == -4
    assert not found.is_for_tests


def test_certificates_of_a_local_kafka_are_for_tests_and_not_wrong(
    examined: Examine, tmp_path: Path
) -> None:
    ca = authority(f"{TEST_AUTHORITY} 1")
    me = certified_by(ca)
    server = certified_by(ca, LOOPBACK)
    with MemoryBroker(tls=server.server_context(tmp_path, trusts=ca)) as broker:
        rows = examined(
            address(broker),
            security_protocol="SSL",
            ssl_truststore_certificates=ca.certificate_pem,
            ssl_keystore_certificate_chain=me.certificate_pem,
            ssl_keystore_key=me.key_pem(),
        )
    for check in ("tls", "client certificate"):
        found = of(rows, check)
        assert found["verdict"] == "ok"
        assert "expires in 0 days; for tests only: a LocalKafka's authority" in found["found"]


def test_an_expired_certificate_of_a_local_kafka_is_wrong(
    broker: MemoryBroker, examined: Examine
) -> None:
    ca = authority(f"{TEST_AUTHORITY} 1")
    me = certified_by(ca, days_left=-1)
    rows = examined(
        address(broker),
        security_protocol="SSL",
        ssl_truststore_certificates=ca.certificate_pem,
        ssl_keystore_certificate_chain=me.certificate_pem,
        ssl_keystore_key=me.key_pem(),
    )
    assert of(rows, "client certificate")["found"] == "it expired 1 days ago"


def test_a_tls_port_without_tls(ca: Certified, examined: Examine, tmp_path: Path) -> None:
    server = certified_by(ca, LOOPBACK)
    with MemoryBroker(tls=server.server_context(tmp_path)) as broker:
        found = wrong(examined(address(broker)))
    assert (found["check"], found["option"]) == ("login", "security.protocol")
    assert "TLS" in found["found"]


# -- topics and rights -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "check", "text"),
    [
        ({"leader_id": -1}, "leaders", "1 (0) of 1 partitions have no leader"),
        ({"replica_nodes": [0, 1]}, "in sync", "1 (0) of 1 partitions have replicas behind"),
        ({"rights": READ_ONLY}, "topic right", "WRITE is not granted"),
        ({"rights": 1 << 8 | 1 << 4}, "topic right", "READ is not granted"),
    ],
)
def test_a_topic_that_is_not_well(
    broker: MemoryBroker, examined: Examine, fields: dict[str, Any], check: str, text: str
) -> None:
    with_topic(broker, **fields)
    found = wrong(examined(address(broker), *TOPIC_OF_T))
    assert (found["check"], found["found"], found["option"]) == (check, text, "--topic")


def test_a_writer_that_may_not_read_is_told_what_exactly_once_needs(
    broker: MemoryBroker, examined: Examine
) -> None:
    with_topic(broker, rights=1 << 8 | 1 << 4)
    assert "writes exactly once" in wrong(examined(address(broker), *TOPIC_OF_T))["remedy"]


@pytest.mark.parametrize("name", ["UNKNOWN_TOPIC_OR_PARTITION", "TOPIC_AUTHORIZATION_FAILED"])
def test_a_topic_that_is_not_shown(broker: MemoryBroker, examined: Examine, name: str) -> None:
    answer = described(broker)
    answer.topics[0].error_code = error_named(name).code
    broker.control(MetadataRequest, lambda r: answer if r.topics else Action.HANDLE, times=None)
    found = wrong(examined(address(broker), *TOPIC_OF_T))
    assert (found["check"], found["found"]) == ("topic", name)
    assert "DESCRIBE" in found["remedy"]


@pytest.mark.parametrize(
    ("code", "operations", "text"),
    [
        ("GROUP_AUTHORIZATION_FAILED", 0, "DESCRIBE is not granted"),
        ("NONE", 1 << 8, "READ is not granted"),
    ],
)
def test_a_group_without_rights(
    broker: MemoryBroker, examined: Examine, code: str, operations: int, text: str
) -> None:
    group = DescribedGroup(error_named(code).code, group_id="g", authorized_operations=operations)
    broker.control(DescribeGroupsRequest, DescribeGroupsResponse(groups=[group]))
    found = wrong(examined(address(broker), "--group", "g"))
    assert (found["check"], found["found"], found["option"]) == ("group right", text, "--group")


def test_a_transactional_id_without_rights(broker: MemoryBroker, examined: Examine) -> None:
    denied = error_named("TRANSACTIONAL_ID_AUTHORIZATION_FAILED").code
    state = TransactionState(denied, "x", "", 0, 0, 0, 0, [])
    broker.control(
        DescribeTransactionsRequest, DescribeTransactionsResponse(transaction_states=[state])
    )
    found = wrong(examined(address(broker), "--transactional-id", "x"))
    assert (found["check"], found["option"]) == ("transactional id right", "--transactional-id")


# -- clocks and the registry -----------------------------------------------------------------------


def test_a_record_from_the_future(
    broker: MemoryBroker, examined: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_ms = time.time_ns() // 1_000_000 + 60_000

    async def newest(_: object, wanted: Any, **__: object) -> Any:
        return {each: OffsetAndTimestamp(0, 0, later_ms) for each in wanted}

    monkeypatch.setattr(clocks, "offsets_for_times", newest)
    found = wrong(examined(address(broker), *TOPIC_OF_T))
    assert (found["check"], found["option"]) == ("clock", "--topic")
    assert "s in the future" in found["found"]


def test_a_registry_and_its_clock(broker: MemoryBroker, examined: Examine) -> None:
    with registry_server() as registry:
        registry.on("/schemas/types", Reply(json=["AVRO"]))
        rows = examined(address(broker), "--registry", registry.url)
        assert of(rows, "registry")["verdict"] == "ok"
        assert of(rows, "clock")["verdict"] == "ok"
        late = (
            b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2015 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n[]"
        )
        registry.on("/schemas/types", Reply(raw=late))
        found = wrong(examined(address(broker), "--registry", registry.url))
    assert (found["check"], found["option"]) == ("clock", "--registry")
    assert "ahead of" in found["found"]


def test_a_registry_that_refuses_shows_no_secret(broker: MemoryBroker, examined: Examine) -> None:
    with registry_server() as registry:
        registry.wanted = frozenset({"Basic x"})
        url = registry.url.replace("://", "://me:Cnry-secret@")
        rows = examined(address(broker), "--registry", url)
    found = wrong(rows)
    assert (found["check"], found["option"]) == (
        "registry",
        "schema.registry.basic.auth.user.info",
    )
    assert "Cnry" not in json.dumps(rows)


def test_a_file_of_java_s_clients_names_the_registry_and_its_user(
    broker: MemoryBroker, examined: Examine, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    with registry_server() as registry:
        registry.on("/schemas/types", Reply(json=["AVRO"]))
        registry.wanted = frozenset({"Basic " + b64encode(b"me:Cnry-secret").decode()})
        file.write_text(
            f"schema.registry.url={registry.url}\n"
            "schema.registry.basic.auth.user.info=me:Cnry-secret\n"
        )
        rows = examined(address(broker), "--config-file", str(file))
    assert of(rows, "registry")["verdict"] == "ok"
    assert "Cnry" not in json.dumps(rows)


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"", b'{"status":"UP"}', b"[1]"])
def test_another_server_in_place_of_a_registry(
    broker: MemoryBroker, examined: Examine, body: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    with registry_server() as registry:
        registry.on("/schemas/types", Reply(raw=head + body))
        found = wrong(examined(address(broker), "--registry", registry.url))
    assert (found["check"], found["option"]) == ("registry", "--registry")
    assert "is it a schema registry?" in found["found"]


def test_a_registry_of_an_unknown_authority_names_its_own_options(
    broker: MemoryBroker, examined: Examine, ca: Certified, tmp_path: Path
) -> None:
    server = certified_by(ca, LOOPBACK)
    with registry_server(server.server_context(tmp_path)) as registry:
        found = wrong(examined(address(broker), "--registry", registry.url))
    option = "schema.registry.ssl.truststore.location"
    assert (found["check"], found["option"]) == ("registry", option)
    assert f"'{option}'" in found["remedy"]


def test_a_registry_that_is_not_there(broker: MemoryBroker, examined: Examine) -> None:
    with refused_port() as port:
        found = wrong(examined(address(broker), "--registry", f"http://{LOOPBACK}:{port}"))
    assert (found["check"], found["option"]) == ("registry", "--registry")
    with registry_server() as registry:
        found = wrong(examined(address(broker), "--registry", registry.url))
    assert "404" in found["found"]
