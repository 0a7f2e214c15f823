"""The provider of a cluster, and the settings that it does not take, by its own documentation.

https://learn.microsoft.com/azure/event-hubs/apache-kafka-configurations
https://learn.microsoft.com/azure/event-hubs/azure-event-hubs-apache-kafka-overview
https://docs.confluent.io/cloud/current/security/authenticate/overview.html
https://docs.aws.amazon.com/msk/latest/developerguide/kafka_apis_iam.html
https://docs.aws.amazon.com/msk/latest/developerguide/msk-password.html
https://docs.aws.amazon.com/msk/latest/developerguide/serverless.html
https://docs.warpstream.com/warpstream/reference/protocol-and-feature-support
https://docs.redpanda.com/current/develop/kafka-clients/
https://docs.streamnative.io/docs/kafka-protocol-and-features
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_kafka_source.doctor.finding import Finding, ok, unknown, wrong
from spark_kafka_source.net import Address
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.describe_configs import DescribeConfigsRequest
from spark_kafka_source.protocol.messages.membership import ConsumerGroupHeartbeatRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.protocol.messages.transactions import EndTxnRequest, TxnOffsetCommitRequest

Api = type[Request[Any]]
_CHECK = "provider"
_NOTHING = r"(?!)"  # A pattern that no text matches.
_OTHER = "Apache Kafka, or brokers that speak like it"


@dataclass(frozen=True, slots=True)
class Limit:
    """A setting of which a provider takes only some values. `remedy` says which."""

    setting: str
    takes: Callable[[str], bool]
    remedy: str
    default: str = ""
    """Kafka's default value, if the provider does not take it."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider, what tells it from others, and its limits."""

    name: str
    host: str = _NOTHING
    """A pattern for the end of a broker's host."""
    cluster_id: str = _NOTHING
    """A pattern for the beginning of the cluster's id."""
    has: tuple[Api, ...] = ()
    lacks: tuple[Api, ...] = ()
    """The APIs that tell its brokers from others. None: they do not."""
    limits: tuple[Limit, ...] = ()


def _one_of(setting: str, *values: str, note: str = "") -> Limit:
    known = {value.lower() for value in values}
    remedy = f"Set '{setting}' to {' or '.join(values)}{note}"
    return Limit(setting, lambda value: value.strip().lower() in known, remedy)


def _number(setting: str, least: int, most: int, default: str = "") -> Limit:
    def takes(value: str) -> bool:
        # What is no number is refused by the client itself.
        return not re.fullmatch(r"\s*-?\d+\s*", value) or least <= int(value) <= most

    remedy = f"Set '{setting}' to {least} to {most}"
    return Limit(setting, takes, remedy, default)


_TLS_AND_LOGIN = _one_of("security.protocol", "SASL_SSL")

PROVIDERS = (
    Provider(
        "Azure Event Hubs",
        host=r"\.servicebus\.(windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)$",
        limits=(
            _TLS_AND_LOGIN,
            _one_of("sasl.mechanism", "PLAIN", "OAUTHBEARER"),
            _one_of("compression.type", "none", "gzip"),
            # It hangs up on larger requests, and on connections that were idle for longer.
            _number("max.request.size", 1, 1_046_527, default="1048576"),
            _number("connections.max.idle.ms", 0, 239_999, default="540000"),
            _number("session.timeout.ms", 6_000, 300_000),
        ),
    ),
    Provider(
        "Confluent Cloud",
        host=r"\.confluent\.cloud$",
        cluster_id="lkc-",
        limits=(
            _one_of("security.protocol", "SASL_SSL", "SSL"),
            _one_of("sasl.mechanism", "PLAIN", "OAUTHBEARER"),
        ),
    ),
    Provider(
        "Amazon MSK Serverless",
        host=r"\.kafka-serverless\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$",
        limits=(
            _TLS_AND_LOGIN,
            _one_of("sasl.mechanism", "AWS_MSK_IAM", "OAUTHBEARER", note=", for IAM"),
        ),
    ),
    Provider(
        "Amazon MSK",
        host=r"\.kafka\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$",
        limits=(_one_of("sasl.mechanism", "SCRAM-SHA-512", "AWS_MSK_IAM", "OAUTHBEARER"),),
    ),
    Provider(
        "WarpStream",
        host=r"\.warpstream\.com$",
        has=(EndTxnRequest, DescribeConfigsRequest),
        lacks=(OffsetForLeaderEpochRequest, ConsumerGroupHeartbeatRequest),
    ),
    Provider("Redpanda", host=r"\.cloud\.redpanda\.com$", cluster_id=r"redpanda\."),
    # Its engine Ursa has no transactions; the other one has.
    Provider(
        "StreamNative Cloud",
        host=r"\.snio\.cloud$",
        has=(TxnOffsetCommitRequest,),
        lacks=(EndTxnRequest,),
    ),
    Provider("Aiven", host=r"\.aivencloud\.com$"),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a cluster. `apis` is None where no broker has told its APIs."""

    addresses: Collection[Address]
    cluster_id: str = ""
    apis: Collection[int] | None = None

    def has(self, api: Api) -> bool:
        """Whether the brokers have this API, as far as is known."""
        return self.apis is None or api.KEY in self.apis


def check_provider(evidence: Evidence, settings: Mapping[str, str]) -> list[Finding]:
    """Return the findings for the provider, and for the given settings that it does not take.

    `settings` are given by the user, with Kafka's names. No value of them is shown.
    """
    provider, reason = provider_of(evidence)
    limits = _limits(provider, settings) if provider else []
    if provider is None and evidence.apis is None:
        return []
    name = f"{provider.name}, by {reason}" if provider else _OTHER
    if not evidence.has(EndTxnRequest):
        name += "; no transactions: nothing is written exactly once"
    return [ok(_CHECK, evidence.cluster_id, name), *limits, *_missing(evidence, settings)]


def provider_of(evidence: Evidence) -> tuple[Provider | None, str]:
    """Return the provider, if something tells it, and what that is."""
    for provider in PROVIDERS:
        for host in dict.fromkeys(address.host for address in evidence.addresses):
            if re.search(provider.host, host.lower().rstrip(".")):
                return provider, f"the host {host}"
    for provider in PROVIDERS:
        if re.match(provider.cluster_id, evidence.cluster_id):
            return provider, "the cluster's id"
    for provider in PROVIDERS:
        if evidence.apis is not None and provider.lacks and _is_like(provider, evidence):
            has, lacks = _names(provider.has), _names(provider.lacks)
            return provider, f"its APIs: it has {has}, and no {lacks}"
    return None, ""


def _is_like(provider: Provider, evidence: Evidence) -> bool:
    lacking = not any(map(evidence.has, provider.lacks))
    return lacking and all(map(evidence.has, provider.has))


def _names(apis: Iterable[Api]) -> str:
    return " and ".join(api.__name__.removesuffix("Request") for api in apis)


def _limits(provider: Provider, settings: Mapping[str, str]) -> list[Finding]:
    findings = []
    for limit in provider.limits:
        given = settings.get(limit.setting)
        if given is not None and not limit.takes(given):
            text = f"{provider.name} does not take the given value"
            findings.append(_wrong(limit.setting, text, limit.remedy))
        elif given is None and limit.default:
            # Nothing tells whether the user's program sends enough, or is ever idle.
            text = f"{provider.name} does not take the default, {limit.default}. {limit.remedy}"
            findings.append(unknown(_CHECK, limit.setting, text))
    return findings


def _missing(evidence: Evidence, settings: Mapping[str, str]) -> list[Finding]:
    """Return findings for settings that need an API which the brokers do not have."""
    findings = []
    protocol = "group.protocol"
    wants_newer = settings.get(protocol, "").strip().lower() == "consumer"
    if wants_newer and not evidence.has(ConsumerGroupHeartbeatRequest):
        text = "the brokers do not have the group protocol of KIP-848"
        findings.append(_wrong(protocol, text, f"Set '{protocol}' to classic"))
    if settings.get("transactional.id") and not evidence.has(EndTxnRequest):
        text = "the brokers have no transactions"
        remedy = "Leave it out, and write at least once"
        findings.append(_wrong("transactional.id", text, remedy))
    return findings


def _wrong(setting: str, found: str, remedy: str) -> Finding:
    return wrong(_CHECK, setting, found, remedy, f"kafka.{setting}")
