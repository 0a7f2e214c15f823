"""Identity of a consumer in its group."""

from dataclasses import dataclass

NO_GENERATION = -1
"""The generation of a member that has not been in the group yet."""
NO_MEMBER_ID = ""


@dataclass(frozen=True, slots=True)
class Member:
    """The identity of a member in commits. With KIP-848 `generation_id` is the member epoch."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
