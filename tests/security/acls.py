"""Rights of users, given and taken as quickly as many tests need it."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import admin

from spark_kafka_source.testing import LocalKafka

CLUSTER = "kafka-cluster"
"""The name that the only resource of its type goes by."""

_TIMEOUT_SECONDS = 30
# Its package does not say by types what it has of this.
_kafka: Any = admin


def allow(kafka: LocalKafka, user: str, operation: str, **resource: str) -> None:
    """Grants a right, and so takes it from all others: `allow(kafka, "bob", "READ", topic="t")`.

    A resource is a `topic`, a `group`, a `transactional_id` or the `broker`, which is to say the
    cluster. A name that ends in `*` stands for all that begin as it does, and `*` for all.
    """
    _add(kafka, "ALLOW", user, operation, resource)


def deny(kafka: LocalKafka, user: str, operation: str, **resource: str) -> None:
    """Takes a right, and where nobody was granted any, all others from everyone."""
    _add(kafka, "DENY", user, operation, resource)


def _add(
    kafka: LocalKafka, permission: str, user: str, operation: str, resource: Mapping[str, str]
) -> None:
    ((kind, name),) = resource.items()
    pattern = "PREFIXED" if name.endswith("*") and name != "*" else "LITERAL"
    binding = _kafka.AclBinding(
        _kafka.ResourceType[kind.upper()],
        name.removesuffix("*") or name,
        _kafka.ResourcePatternType[pattern],
        f"User:{user}",
        "*",
        _kafka.AclOperation[operation],
        _kafka.AclPermissionType[permission],
    )
    client = _kafka.AdminClient({"bootstrap.servers": kafka.bootstrap_servers_of("INTERNAL")})
    for future in client.create_acls([binding]).values():
        future.result(_TIMEOUT_SECONDS)
