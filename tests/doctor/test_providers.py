"""The provider that the doctor names, and the settings that this provider does not take."""

import socket
from typing import Any

import pytest

from spark_kafka_source.doctor import Verdict
from spark_kafka_source.doctor.providers import PROVIDERS, Evidence, check_provider, provider_of
from spark_kafka_source.net import Address
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from spark_kafka_source.protocol.messages.transactions import EndTxnRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker
from tests.doctor.rows import Examine, Row, of, wrong
from tests.other_brokers.makers import MAKERS, Maker
from tools.ports import LOOPBACK

HOSTS = {
    "ns.servicebus.windows.net": "Azure Event Hubs",
    "ns.servicebus.chinacloudapi.cn": "Azure Event Hubs",
    "pkc-12345.eu-central-1.aws.confluent.cloud": "Confluent Cloud",
    "b-1.demo.abc123.c2.kafka.eu-central-1.amazonaws.com": "Amazon MSK",
    "b-1.demo.abc123.c2.kafka.cn-north-1.amazonaws.com.cn": "Amazon MSK",
    "boot-ab12.c1.kafka-serverless.us-east-1.amazonaws.com": "Amazon MSK Serverless",
    "api-1.kafka.discoveryv2.prod-z.us-east-1.warpstream.com": "WarpStream",
    "seed-1.c0.byoc.prd.cloud.redpanda.com": "Redpanda",
    "pc-1.aws-use2.streamnative.aws.snio.cloud": "StreamNative Cloud",
    "kafka-1-demo.a.aivencloud.com": "Aiven",
}
MAKERS_BY_NAME = {each.name: each for each in MAKERS}


def given(*settings: str) -> list[str]:
    return [f"--config={each}" for each in settings]


def refused(rows: list[Row]) -> set[str]:
    """Return the settings that are wrong, each with what to do and the option to look at."""
    found = [row for row in rows if row["verdict"] == "wrong"]
    assert all(row["check"] == "provider" and row["remedy"] for row in found)
    assert all(row["option"] == row["subject"] for row in found)
    return {row["subject"] for row in found}


@pytest.fixture
def at_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve the names in HOSTS to this machine."""
    resolve = socket.getaddrinfo

    def local(host: str, *rest: Any, **named: Any) -> Any:
        return resolve(LOOPBACK if host in HOSTS else host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", local)


def advertise(broker: MemoryBroker, host: str, cluster_id: str = "") -> None:
    """Let the broker tell that it has this host, and that its cluster has this id."""
    where = [MetadataResponseBroker(0, host, broker.address().port)]
    answer = MetadataResponse(brokers=where, cluster_id=cluster_id)
    broker.control(MetadataRequest, answer, times=None)


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("host", "name"), HOSTS.items(), ids=HOSTS.values())
def test_a_host_tells_the_provider(host: str, name: str) -> None:
    for each in (host, f"{host.upper()}."):
        found, reason = provider_of(Evidence([Address("10.0.0.1", 9092), Address(each, 9092)]))
        assert found is not None
        assert (found.name, reason) == (name, f"the host {each}")


@pytest.mark.parametrize("host", [f"{each}.example" for each in HOSTS] + ["warpstream.com.invalid"])
def test_a_host_that_only_contains_such_a_name_tells_nothing(host: str) -> None:
    assert provider_of(Evidence([Address(host, 9092)])) == (None, "")


def test_each_provider_is_told_by_some_host() -> None:
    assert {each.name for each in PROVIDERS} == {*HOSTS.values()}


@pytest.mark.parametrize(
    ("cluster_id", "name"),
    [
        ("redpanda.5f8a1c1e-1111-2222-3333-444455556666", "Redpanda, by the cluster's id"),
        ("lkc-abc12", "Confluent Cloud, by the cluster's id"),
        ("MkU3OEVBNTcwNTJENDM2Qk", "Apache Kafka, or brokers that speak like it"),
        ("my-redpanda.1", "Apache Kafka, or brokers that speak like it"),
    ],
)
def test_a_cluster_s_id_tells_the_provider(
    broker: MemoryBroker, examined: Examine, cluster_id: str, name: str
) -> None:
    advertise(broker, LOOPBACK, cluster_id)
    found = of(examined(str(broker.address())), "provider")
    assert (found["verdict"], found["subject"], found["found"]) == ("ok", cluster_id, name)


@pytest.mark.parametrize(
    ("maker", "name"),
    [
        ("WarpStream", "WarpStream, by its APIs: it has EndTxn and DescribeConfigs, and no Offset"),
        ("Ursa", "StreamNative Cloud, by its APIs: it has TxnOffsetCommit, and no EndTxn; no tr"),
        ("Redpanda", "Apache Kafka, or brokers that speak like it"),
        ("Event Hubs", "Apache Kafka, or brokers that speak like it; no transactions: nothing is"),
    ],
)
def test_apis_that_brokers_lack_tell_some_providers(
    examined: Examine, maker: str, name: str
) -> None:
    with MAKERS_BY_NAME[maker].broker() as broker:
        rows = examined(str(broker.address()))
    assert of(rows, "provider")["found"].startswith(name)
    assert not refused(rows)


@pytest.mark.usefixtures("at_host")
def test_the_host_that_brokers_advertise_tells_the_provider(
    broker: MemoryBroker, examined: Examine
) -> None:
    host = "kafka-1-demo.a.aivencloud.com"
    advertise(broker, host)
    found = of(examined(str(broker.address())), "provider")["found"]
    assert found == f"Aiven, by the host {host}"


def test_no_name_where_no_broker_answers_and_no_host_tells(examined: Examine) -> None:
    rows = examined("no-such-host.invalid:9092", *given("compression.type=lz4"))
    assert wrong(rows)["check"] == "connect"
    assert not [row for row in rows if row["check"] == "provider"]


def test_settings_are_judged_by_the_host_where_no_broker_answers(
    examined: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    rows = examined("ns.servicebus.windows.net:9093", *given("compression.type=lz4"))
    found = of(rows, "provider", "compression.type")
    assert found["verdict"] == "wrong"
    assert found["remedy"] == "Set 'compression.type' to none or gzip"


# -- settings --------------------------------------------------------------------------------------

EVENT_HUBS = "ns.servicebus.windows.net"


@pytest.mark.usefixtures("at_host")
def test_event_hubs(examined: Examine) -> None:
    """The whole way: a host that resolves to brokers which lack what Event Hubs lack."""
    with MAKERS_BY_NAME["Event Hubs"].broker() as broker:
        advertise(broker, EVENT_HUBS)
        servers = f"{EVENT_HUBS}:{broker.address().port}"
        settings = (
            "compression.type=lz4",
            "max.request.size=1048576",
            "connections.max.idle.ms=240000",
            "session.timeout.ms=5000",
            "group.protocol=consumer",
            "transactional.id=mine",
        )
        rows = examined(servers, *given(*settings))
        taken = examined(
            servers,
            *given(
                "compression.type=GZIP",
                "max.request.size=1000000",
                "connections.max.idle.ms=180000",
                "session.timeout.ms=6000",
                "group.protocol=classic",
            ),
        )
        defaults = examined(servers)
    assert of(rows, "provider")["found"].startswith("Azure Event Hubs, by the host ns.")
    assert refused(rows) == {each.partition("=")[0] for each in settings}
    assert not refused(taken)
    assert not [row for row in taken if row["verdict"] == "unknown"]
    unknown = [row["subject"] for row in defaults if row["verdict"] == "unknown"]
    assert unknown == ["max.request.size", "connections.max.idle.ms"]
    assert "does not take the default, 540000" in of(defaults, "provider", unknown[1])["found"]


@pytest.mark.parametrize("maker", MAKERS, ids=lambda each: each.name)
def test_what_brokers_lack_is_refused_whoever_made_them(examined: Examine, maker: Maker) -> None:
    with maker.broker() as broker:
        rows = examined(
            str(broker.address()),
            *given("group.protocol=consumer", "transactional.id=mine", "compression.type=lz4"),
        )
    lacking = {"group.protocol"} - ({"group.protocol"} if maker.has_second_protocol else set())
    lacking |= set() if maker.has_transactions else {"transactional.id"}
    assert refused(rows) == lacking


def test_an_id_to_describe_is_refused_where_there_are_no_transactions(examined: Examine) -> None:
    with MAKERS_BY_NAME["Ursa"].broker() as broker:
        rows = examined(str(broker.address()), "--transactional-id", "mine")
    found = of(rows, "provider", "transactional.id")
    assert (found["verdict"], found["found"]) == ("wrong", "the brokers have no transactions")


def test_nothing_is_refused_by_brokers_of_apache_kafka(
    broker: MemoryBroker, examined: Examine
) -> None:
    rows = examined(
        str(broker.address()),
        *given("group.protocol=consumer", "transactional.id=mine", "compression.type=zstd"),
    )
    assert not refused(rows)
    assert of(rows, "provider")["found"] == "Apache Kafka, or brokers that speak like it"


@pytest.mark.parametrize(
    ("host", "setting", "value", "is_taken"),
    [
        ("Azure Event Hubs", "sasl.mechanism", "OAUTHBEARER", True),
        ("Azure Event Hubs", "sasl.mechanism", "SCRAM-SHA-512", False),
        ("Azure Event Hubs", "connections.max.idle.ms", "-1", False),
        ("Azure Event Hubs", "connections.max.idle.ms", "no number", True),
        ("Azure Event Hubs", "compression.type", "Cnry-secret", False),
        ("Azure Event Hubs", "max.request.size", "1046527", True),
        ("Azure Event Hubs", "max.request.size", "1046528", False),
        ("Confluent Cloud", "sasl.mechanism", "PLAIN", True),
        ("Confluent Cloud", "sasl.mechanism", "SCRAM-SHA-256", False),
        ("Confluent Cloud", "security.protocol", "PLAINTEXT", False),
        ("Amazon MSK", "sasl.mechanism", "SCRAM-SHA-512", True),
        ("Amazon MSK", "sasl.mechanism", "PLAIN", False),
        ("Amazon MSK Serverless", "sasl.mechanism", "AWS_MSK_IAM", True),
        ("Amazon MSK Serverless", "sasl.mechanism", "SCRAM-SHA-512", False),
        ("Amazon MSK Serverless", "security.protocol", "SSL", False),
    ],
)
def test_a_value_that_a_provider_takes_or_not(
    host: str, setting: str, value: str, is_taken: bool
) -> None:
    (at, *_) = [each for each, name in HOSTS.items() if name == host]
    rows = check_provider(Evidence([Address(at, 9092)]), {setting: value})
    found = [row for row in rows if row.verdict is Verdict.WRONG]
    assert [row.subject for row in found] == ([] if is_taken else [setting])
    assert "Cnry" not in str(rows)


def test_a_file_may_have_a_producer_s_settings(
    broker: MemoryBroker, examined: Examine, tmp_path: Any
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("transactional.id=mine\ngroup.protocol=consumer\nlinger.ms=5\n")
    lacks = {EndTxnRequest.KEY}
    broker.control(EndTxnRequest, Action.CLOSE)
    rows = examined(str(broker.address()), "--config-file", str(file))
    assert not refused(rows)
    settings = {"transactional.id": "mine", "group.protocol": "consumer"}
    evidence = Evidence([], apis=set(range(100)) - lacks)
    found = check_provider(evidence, settings)
    assert [row.subject for row in found if row.verdict is Verdict.WRONG] == ["transactional.id"]
