"""Assignors: how the leader of a group divides the partitions among the members.

Their assignments equal those of Kafka's own assignors, byte for byte. See
`partition.assignment.strategy` in https://kafka.apache.org/documentation/. To divide in another
way, write an `Assignor`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups.assignors.assignor import Assignor, Cluster, RebalanceProtocol
from spark_kafka_source.groups.assignors.range import RangeAssignor
from spark_kafka_source.groups.assignors.round_robin import RoundRobinAssignor
from spark_kafka_source.groups.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from spark_kafka_source.groups.assignors.subscription import (
    NO_GENERATION,
    Assignment,
    Subscription,
)

ASSIGNORS: Mapping[str, Callable[[], Assignor]] = MappingProxyType(
    {
        "range": RangeAssignor,
        "roundrobin": RoundRobinAssignor,
        "sticky": StickyAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
)
"""Kafka's assignors, by their names in JoinGroup."""

_OPTION = "kafka.partition.assignment.strategy"
_JAVA_CLASSES = {
    f"org.apache.kafka.clients.consumer.{java}": name
    for java, name in (
        ("RangeAssignor", "range"),
        ("RoundRobinAssignor", "roundrobin"),
        ("StickyAssignor", "sticky"),
        ("CooperativeStickyAssignor", "cooperative-sticky"),
    )
}


def assignors_named(text: str, option: str = _OPTION) -> list[Assignor]:
    """Create assignors by their names or by Java's class names, with commas between them.

    Raises `ConfigurationError` for an unknown name; `option` is where it was given.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = [ASSIGNORS.get(_JAVA_CLASSES.get(name, name)) for name in names]
    if not found or None in found:
        wrong = repr(names[found.index(None)]) if found else "none"
        raise ConfigurationError(option, f"found {wrong}", f"There are {', '.join(ASSIGNORS)}")
    return [make() for make in found if make is not None]


__all__ = [
    "ASSIGNORS",
    "NO_GENERATION",
    "Assignment",
    "Assignor",
    "Cluster",
    "CooperativeStickyAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Subscription",
    "assignors_named",
]
