"""ACLs for users, granted and removed quickly."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import admin

from spark_kafka_source.testing import LocalKafka
from tools.traffic import wait_until

CLUSTER = "kafka-cluster"
"""The name of the only resource of its type."""

_TIMEOUT_SECONDS = 60
# The package has no type hints for these.
_kafka: Any = admin


def allow(kafka: LocalKafka, user: str, operation: str, **resource: str) -> None:
    """Grant a right, as in `allow(kafka, "bob", "READ", topic="t")`. All other users lose it.

    A resource is a `topic`, a `group`, a `transactional_id` or the `broker`, which means the
    cluster. A name that ends in `*` is a prefix of names. `*` alone means all names.
    """
    _add(kafka, "ALLOW", user, operation, resource)


def deny(kafka: LocalKafka, user: str, operation: str, **resource: str) -> None:
    """Deny a right. If nobody was granted any right, everyone loses all other rights."""
    _add(kafka, "DENY", user, operation, resource)


def _add(
    kafka: LocalKafka, permission: str, user: str, operation: str, resource: Mapping[str, str]
) -> None:
    ((kind, name),) = resource.items()
    pattern = "PREFIXED" if name.endswith("*") and name != "*" else "LITERAL"
    rule = (
        _kafka.ResourceType[kind.upper()],
        name.removesuffix("*") or name,
        _kafka.ResourcePatternType[pattern],
        f"User:{user}",
        "*",
        _kafka.AclOperation[operation],
        _kafka.AclPermissionType[permission],
    )
    client = _kafka.AdminClient({"bootstrap.servers": kafka.bootstrap_servers_of("INTERNAL")})
    for future in client.create_acls([_kafka.AclBinding(*rule)]).values():
        future.result(_TIMEOUT_SECONDS)
    # So far only the controller has the rule. DescribeAcls lists the rules that brokers enforce.
    wanted = _kafka.AclBindingFilter(*rule)
    wait_until(lambda: client.describe_acls(wanted).result(_TIMEOUT_SECONDS))
