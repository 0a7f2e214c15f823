"""Committed offsets that are no positions: those by which exactly-once queries keep decisions.

Such an offset is the number of a micro-batch, and its metadata are the decision. Its partition has
nothing to do with it, so the distance to the partition's end is no lag.
"""

import json
from collections.abc import Iterable

from spark_kafka_source.admin.committed import all_committed
from spark_kafka_source.admin.group_descriptions import GroupListing
from spark_kafka_source.client import KafkaClient

_FIELDS = {"v", "query", "run", "batch", "number", "parts", "part", "tasks"}
_STATES = {"Empty", ""}  # Brokers before Kafka 2.6 tell no state.


def is_decision(metadata: str) -> bool:
    """Whether these are the metadata of a decision, of this version of the package or another."""
    if not metadata.startswith("{"):
        return False
    try:
        found = json.loads(metadata)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= _FIELDS


async def groups_with_decisions(client: KafkaClient, groups: Iterable[GroupListing]) -> set[str]:
    """Return the ids of the groups that keep decisions.

    A group whose offsets this user may not see is not among them. Only groups that never had
    members are asked for.
    """
    asked = [each.group_id for each in groups if not each.protocol_type and each.state in _STATES]
    return {
        group_id
        for group_id, committed in (await all_committed(client, asked)).items()
        if isinstance(committed, dict)
        and any(is_decision(each.metadata) for each in committed.values())
    }
