"""Assignors: how the leader of a group divides the partitions among the members.

They give what Kafka's own give, byte for byte: https://kafka.apache.org/documentation/, under
`partition.assignment.strategy`. To divide in a way of your own, write an `Assignor`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

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
"""Kafka's assignors by the names that they have in JoinGroup."""

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
]
