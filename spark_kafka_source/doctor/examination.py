"""All checks in their order. Brokers are checked side by side, each with the same deadline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.doctor.brokers import check_broker, check_client_certificate
from spark_kafka_source.doctor.finding import (
    Finding,
    Verdict,
    failed,
    ok,
    timed,
    unknown,
    wrong,
)
from spark_kafka_source.doctor.providers import Evidence, check_provider
from spark_kafka_source.doctor.registry_and_clocks import check_newest, check_registry
from spark_kafka_source.doctor.rights import check_group, check_topic, check_transactional_id
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net import Address, BrokerHistory, Deadline
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.registry import RegistryConfig
from spark_kafka_source.spelling import daemon

_SERVERS = "kafka.bootstrap.servers"
_ADVERTISED = "advertised.listeners"
_MOST_BROKERS = 100
# A check that the deadline ends needs a moment to report it.
_SLACK_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Scope:
    """What a user wants to have checked, besides the brokers."""

    topic: str | None = None
    group: str | None = None
    transactional_id: str | None = None
    registry: RegistryConfig | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All settings that the user has given, a producer's too, with Kafka's names."""


def examine(config: ClientConfig, scope: Scope, timeout_ms: int) -> list[Finding]:
    """Return all findings, in the order of the checks. It ends soon after the timeout.

    Brokers have half of the time, so that a silent one leaves time for the rest.
    """
    deadline = Deadline.after_ms(timeout_ms)
    first = Deadline.after_ms(timeout_ms // 2)
    given = list(dict.fromkeys(config.bootstrap_servers))
    history = BrokerHistory()
    findings = check_client_certificate(config) + _side_by_side(given, config, first, history)
    if any(
        finding.check == "round trip" and not finding.remedy and finding.took_ms is not None
        for finding in findings
    ):
        with KafkaClient(config) as client:
            findings += _of_cluster(client, given, scope, deadline, history)
    else:
        findings += check_provider(Evidence(given), scope.settings) + _nothing_of_cluster(scope)
    if scope.registry is not None:
        registry = replace(scope.registry, timeout_ms=timeout_ms)
        findings += check_registry(registry, Deadline.after_ms(timeout_ms // 2))
    return findings


def _side_by_side(
    addresses: Iterable[Address], config: ClientConfig, deadline: Deadline, history: BrokerHistory
) -> list[Finding]:
    """Check each broker in a thread of its own: a resolver may be silent for too long."""
    by_address: dict[Address, list[Finding]] = {}

    def check(address: Address) -> None:
        by_address[address] = check_broker(address, config.connection, deadline, history)

    threads = {}
    for address in addresses:
        threads[address] = daemon(partial(check, address), f"doctor-{address}")
        threads[address].start()
    for thread in threads.values():
        thread.join(deadline.remaining_seconds() + _SLACK_SECONDS)
    return [finding for each in threads for finding in by_address.get(each) or [_silent(each)]]


def _silent(address: Address) -> Finding:
    remedy = "Check the name servers and the network"
    return wrong("connect", str(address), "no result in time", remedy, _SERVERS)


def _of_cluster(
    client: KafkaClient,
    given: list[Address],
    scope: Scope,
    deadline: Deadline,
    history: BrokerHistory,
) -> list[Finding]:
    findings = [timed(lambda: _learn(client, deadline))]
    if findings[0].remedy:
        return (
            findings + check_provider(Evidence(given), scope.settings) + _nothing_of_cluster(scope)
        )
    findings += check_provider(_evidence(client, given, deadline), scope.settings)
    findings += _at_one_address(client)
    addresses = [broker.address for broker in client.cluster.brokers.values()]
    others = [address for address in addresses if address not in given]
    named = _side_by_side(others[:_MOST_BROKERS], client.config, _half_of(deadline), history)
    findings += map(_advertised, named)
    if left := others[_MOST_BROKERS:]:
        text = f"not checked: {len(left)} more brokers of the cluster"
        findings.append(unknown("connect", f"{left[0]} and others", text))
    return findings + _in_scope(client, scope, deadline)


def _in_scope(client: KafkaClient, scope: Scope, deadline: Deadline) -> list[Finding]:
    """Check what the user names. The clock is last: it asks leaders, and one may be silent."""
    findings: list[Finding] = []
    if scope.topic is not None:
        findings += check_topic(client, scope.topic, deadline)
    if scope.group is not None:
        findings += check_group(client, scope.group, _half_of(deadline))
    if scope.transactional_id is not None:
        findings += check_transactional_id(client, scope.transactional_id, _half_of(deadline))
    if scope.topic is None:
        return findings
    if any(finding.check == "topic" for finding in findings):
        return [*findings, unknown("clock", scope.topic, "not checked: 'topic' failed")]
    return findings + check_newest(client, scope.topic, deadline)


def _half_of(deadline: Deadline) -> Deadline:
    """Return a deadline for one check: a silent broker leaves time for the next ones."""
    return Deadline.after_ms(max(1, deadline.remaining_ms() // 2))


def _at_one_address(client: KafkaClient) -> list[Finding]:
    """Return a finding for brokers with the same address: only one of them can be reached."""
    at: dict[Address, list[int]] = {}
    for node_id, broker in sorted(client.cluster.brokers.items()):
        at.setdefault(broker.address, []).append(node_id)
    return [
        wrong(
            "cluster",
            str(address),
            f"brokers {', '.join(map(str, ids))} advertise this same address",
            "Give each broker an address of its own",
            _ADVERTISED,
        )
        for address, ids in at.items()
        if len(ids) > 1
    ]


def _advertised(finding: Finding) -> Finding:
    """Return the finding of a broker that the cluster names. The user never gave its address."""
    if finding.check == "connect" and finding.verdict is Verdict.WRONG:
        return replace(finding, option=_ADVERTISED)
    return finding


def _learn(client: KafkaClient, deadline: Deadline) -> Finding:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    try:
        answer = client.run(client.send_to_any(request, deadline))
        client.cluster.update(answer)
    except KafkaError as error:
        return failed("cluster", "", error, _SERVERS, "See the findings for the brokers")
    return ok("cluster", answer.cluster_id or "", f"brokers: {len(answer.brokers)}")


def _evidence(client: KafkaClient, given: list[Address], deadline: Deadline) -> Evidence:
    """Return what tells the provider. Any one broker tells the APIs."""
    addresses = [*given, *(broker.address for broker in client.cluster.brokers.values())]
    evidence = Evidence(addresses, client.cluster.cluster_id)
    try:
        answer = client.run(client.send_to_any(ApiVersionsRequest(), _half_of(deadline)))
    except KafkaError:
        return evidence
    return replace(evidence, apis={api.api_key for api in answer.api_keys})


def _nothing_of_cluster(scope: Scope) -> list[Finding]:
    asked = (
        ("topic", scope.topic),
        ("group right", scope.group),
        ("transactional id right", scope.transactional_id),
    )
    text = "not checked: no broker answers"
    return [unknown(check, name, text) for check, name in asked if name is not None]
