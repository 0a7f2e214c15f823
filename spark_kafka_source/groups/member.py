"""Who a consumer is in its group."""

from dataclasses import dataclass

NO_GENERATION = -1
NO_MEMBER_ID = ""


@dataclass(frozen=True, slots=True)
class Member:
    """What a commit must carry; `generation_id` is the member epoch with KIP-848."""

    group_id: str
    member_id: str
    generation_id: int
    group_instance_id: str | None = None
