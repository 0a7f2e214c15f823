"""Consumer groups: how members share the partitions.

`Membership` keeps a consumer in its group. `assignors` divide the partitions among the members; the
member that the coordinator chose as leader runs one of them.
"""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.groups.config import GroupConfig, GroupProtocol
    from spark_kafka_source.groups.listener import RebalanceListener
    from spark_kafka_source.groups.member import Member
    from spark_kafka_source.groups.membership import (
        Hooks,
        Membership,
        classic_membership,
        consumer_membership,
        new_membership,
    )
    from spark_kafka_source.groups.offsets import (
        CommitFailedError,
        MemberOf,
        OffsetAndMetadata,
        commit_offsets,
        committed,
        committed_offsets,
        has_no_group,
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
    "has_no_group",
    "new_membership",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "CommitFailedError": "offsets",
            "GroupConfig": "config",
            "GroupProtocol": "config",
            "Hooks": "membership",
            "Member": "member",
            "MemberOf": "offsets",
            "Membership": "membership",
            "OffsetAndMetadata": "offsets",
            "RebalanceListener": "listener",
            "Step": "participant",
            "classic_membership": "membership",
            "commit_offsets": "offsets",
            "committed": "offsets",
            "committed_offsets": "offsets",
            "consumer_membership": "membership",
            "has_no_group": "offsets",
            "new_membership": "membership",
        },
    )
