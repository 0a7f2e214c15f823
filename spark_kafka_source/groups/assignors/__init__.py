"""Assignors: how the leader of a group divides the partitions among the members.

Their assignments equal those of Kafka's own assignors, byte for byte. See
`partition.assignment.strategy` in https://kafka.apache.org/documentation/. To divide in another
way, write an `Assignor`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.groups.assignors.assignor import Assignor, Cluster, RebalanceProtocol
from spark_kafka_source.groups.assignors.range import RangeAssignor
from spark_kafka_source.groups.assignors.round_robin import RoundRobinAssignor
from spark_kafka_source.groups.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from spark_kafka_source.groups.assignors.subscription import Assignment, Subscription
from spark_kafka_source.groups.member import NO_GENERATION

ASSIGNORS: Mapping[str, type[Assignor]] = MappingProxyType(
    {
        "range": RangeAssignor,
        "roundrobin": RoundRobinAssignor,
        "sticky": StickyAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
)
"""Kafka's assignors, by their names in JoinGroup."""

_OPTION = "kafka.partition.assignment.strategy"
_JAVAS = "org.apache.kafka.clients.consumer."
_BY_NAME = {**ASSIGNORS, **{_JAVAS + each.__name__: each for each in ASSIGNORS.values()}}


def assignors_named(text: str, option: str = _OPTION) -> list[Assignor]:
    """Create assignors by their names or by Java's class names, with commas between them.

    Raises `ConfigurationError` for an unknown name; `option` is where it was given.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    wrong = next((repr(name) for name in names if name not in _BY_NAME), None if names else "none")
    if wrong is not None:
        raise ConfigurationError(option, f"found {wrong}", f"There are {', '.join(ASSIGNORS)}")
    return [_BY_NAME[name]() for name in names]


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
