"""All checks in their order. Brokers are checked side by side, each with the same deadline."""

import threading
from collections.abc import Iterable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.doctor.brokers import check_broker, check_client_certificate
from spark_kafka_source.doctor.clocks import check_newest, check_registry
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
from spark_kafka_source.doctor.rights import check_group, check_topic, check_transactional_id
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.net import Address, Contacts, Deadline
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.registry import RegistryConfig

_SERVERS = "kafka.bootstrap.servers"
_ADVERTISED = "advertised.listeners"
_MOST_BROKERS = 100
# A check that the deadline ends needs a moment to report it.
_SLACK_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user wants to have checked, besides the brokers."""

    topic: str | None = None
    group: str | None = None
    transactional_id: str | None = None
    registry: RegistryConfig | None = None
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All settings that the user has given, a producer's too, with Kafka's names."""


def examine(config: ClientConfig, wanted: Wanted, timeout_ms: int) -> list[Finding]:
    """Return all findings, in the order of the checks. It ends soon after the timeout.

    Brokers have half of the time, so that a silent one leaves time for the rest.
    """
    deadline = Deadline.after_ms(timeout_ms)
    first = Deadline.after_ms(timeout_ms // 2)
    given = list(dict.fromkeys(config.bootstrap_servers))
    contacts = Contacts()
    found = check_client_certificate(config) + _side_by_side(given, config, first, contacts)
    if any(
        each.check == "round trip" and not each.remedy and each.took_ms is not None
        for each in found
    ):
        with KafkaClient(config) as client:
            found += _of_cluster(client, given, wanted, deadline, contacts)
    else:
        found += check_provider(Evidence(given), wanted.settings) + _nothing_of_cluster(wanted)
    if wanted.registry is not None:
        registry = replace(wanted.registry, timeout_ms=timeout_ms)
        found += check_registry(registry, Deadline.after_ms(timeout_ms // 2))
    return found


def _side_by_side(
    addresses: Iterable[Address], config: ClientConfig, deadline: Deadline, contacts: Contacts
) -> list[Finding]:
    """Check each broker in a thread of its own: a resolver may be silent for too long."""
    found: dict[Address, list[Finding]] = {}

    def check(address: Address) -> None:
        found[address] = check_broker(address, config.connection, deadline, contacts)

    threads = {}
    for each in addresses:
        run = partial(copy_context().run, check, each)
        threads[each] = threading.Thread(target=run, name=f"doctor-{each}", daemon=True)
        threads[each].start()
    for thread in threads.values():
        thread.join(deadline.remaining_seconds() + _SLACK_SECONDS)
    return [finding for each in threads for finding in found.get(each) or [_silent(each)]]


def _silent(address: Address) -> Finding:
    remedy = "Check the name servers and the network"
    return wrong("connect", str(address), "no result in time", remedy, _SERVERS)


def _of_cluster(
    client: KafkaClient,
    given: list[Address],
    wanted: Wanted,
    deadline: Deadline,
    contacts: Contacts,
) -> list[Finding]:
    found = [timed(lambda: _learn(client, deadline))]
    if found[0].remedy:
        return (
            found + check_provider(Evidence(given), wanted.settings) + _nothing_of_cluster(wanted)
        )
    found += check_provider(_evidence(client, given, deadline), wanted.settings)
    found += _at_one_address(client)
    others = [each.address for each in client.cluster.brokers.values() if each.address not in given]
    named = _side_by_side(others[:_MOST_BROKERS], client.config, _half_of(deadline), contacts)
    found += map(_advertised, named)
    if left := others[_MOST_BROKERS:]:
        text = f"not checked: {len(left)} more brokers of the cluster"
        found.append(unknown("connect", f"{left[0]} and others", text))
    return found + _of_wanted(client, wanted, deadline)


def _of_wanted(client: KafkaClient, wanted: Wanted, deadline: Deadline) -> list[Finding]:
    """Check what the user names. The clock is last: it asks leaders, and one may be silent."""
    found: list[Finding] = []
    if wanted.topic is not None:
        found += check_topic(client, wanted.topic, deadline)
    if wanted.group is not None:
        found += check_group(client, wanted.group, _half_of(deadline))
    if wanted.transactional_id is not None:
        found += check_transactional_id(client, wanted.transactional_id, _half_of(deadline))
    if wanted.topic is None:
        return found
    if any(each.check == "topic" for each in found):
        return [*found, unknown("clock", wanted.topic, "not checked: 'topic' failed")]
    return found + check_newest(client, wanted.topic, deadline)


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
    """Return what tells the provider. Its APIs are those of any one broker."""
    addresses = [*given, *(each.address for each in client.cluster.brokers.values())]
    found = Evidence(addresses, client.cluster.cluster_id)
    try:
        answer = client.run(client.send_to_any(ApiVersionsRequest(), _half_of(deadline)))
    except KafkaError:
        return found
    return replace(found, apis={each.api_key for each in answer.api_keys})


def _nothing_of_cluster(wanted: Wanted) -> list[Finding]:
    asked = (
        ("topic", wanted.topic),
        ("group right", wanted.group),
        ("transactional id right", wanted.transactional_id),
    )
    text = "not checked: no broker answers"
    return [unknown(check, name, text) for check, name in asked if name is not None]
