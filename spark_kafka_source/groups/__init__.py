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
    from spark_kafka_source.groups.membership import Membership, Step
    from spark_kafka_source.groups.offsets import (
        CommitFailedError,
        MemberOf,
        OffsetAndMetadata,
        commit_offsets,
        committed,
        committed_offsets,
        has_no_group,
    )
    from spark_kafka_source.groups.protocols import new_membership

__all__ = [
    "CommitFailedError",
    "GroupConfig",
    "GroupProtocol",
    "Member",
    "MemberOf",
    "Membership",
    "OffsetAndMetadata",
    "RebalanceListener",
    "Step",
    "commit_offsets",
    "committed",
    "committed_offsets",
    "has_no_group",
    "new_membership",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "config": "GroupConfig GroupProtocol",
            "listener": "RebalanceListener",
            "member": "Member",
            "membership": "Membership Step",
            "offsets": (
                "CommitFailedError MemberOf OffsetAndMetadata commit_offsets committed "
                "committed_offsets has_no_group"
            ),
            "protocols": "new_membership",
        },
    )
