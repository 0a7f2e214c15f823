"""Consumer groups: who reads which partitions.

`membership` keeps a consumer in its group, `assignors` divides the partitions among the members, on
the one whom the coordinator chose.
"""

from spark_kafka_source.groups.config import GroupConfig, GroupProtocol
from spark_kafka_source.groups.listener import RebalanceListener
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.membership import (
    Membership,
    classic_membership,
    consumer_membership,
    membership,
)
from spark_kafka_source.groups.offsets import (
    CommitFailedError,
    MemberOf,
    OffsetAndMetadata,
    commit_offsets,
    committed,
    committed_offsets,
)

__all__ = [
    "CommitFailedError",
    "GroupConfig",
    "GroupProtocol",
    "Member",
    "MemberOf",
    "Membership",
    "OffsetAndMetadata",
    "RebalanceListener",
    "classic_membership",
    "commit_offsets",
    "committed",
    "committed_offsets",
    "consumer_membership",
    "membership",
]
