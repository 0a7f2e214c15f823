"""Consumer groups: who reads which partitions.

`membership` keeps a consumer in its group, `assignors` divides the partitions among the members, on
the one whom the coordinator chose.
"""

from spark_kafka_source.groups.config import GroupConfig, GroupProtocol
from spark_kafka_source.groups.listener import RebalanceListener
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.membership import (
    Hooks,
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
from spark_kafka_source.groups.participant import Step

__all__ = [
    "CommitFailedError",
    "GroupConfig",
    "GroupProtocol",
    "Hooks",
    "Member",
    "MemberOf",
    "Membership",
    "OffsetAndMetadata",
    "RebalanceListener",
    "Step",
    "classic_membership",
    "commit_offsets",
    "committed",
    "committed_offsets",
    "consumer_membership",
    "membership",
]
