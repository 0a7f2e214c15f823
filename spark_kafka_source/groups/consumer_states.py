"""Where a member of KIP-848's protocol stands, and what moves it: one table."""

from collections.abc import Mapping
from enum import Enum


class ConsumerState(Enum):
    """As Kafka's `MemberState`."""

    UNSUBSCRIBED = "no member; the next poll joins where there is something to read"
    JOINING = "it asks to be a member, by an epoch of 0"
    RECONCILING = "it is to own something else; the next poll sees to that"
    ACKNOWLEDGING = "it owns what it is to own, and tells the coordinator"
    STABLE = "it owns what it is to own, and the coordinator knows"
    FENCED = "the coordinator does not know it; the next poll gives all up as lost"
    FATAL = "another has its instance id; it can only leave"


class ConsumerEvent(Enum):
    """What happens to a member."""

    SUBSCRIBED = "it wants to be a member"
    ASSIGNED = "the coordinator says what it is to own, and that is news"
    CONFIRMED = "the coordinator says what it is to own, and it does"
    RECONCILED = "it owns what it was told to"
    ACKNOWLEDGED = "the coordinator knows that"
    LOST = "the coordinator does not know it in its epoch, or it did not poll"
    TAKEN_OVER = "another has its instance id"
    LEFT = "it leaves the group, or closes"


_State, _Event = ConsumerState, ConsumerEvent
_MEMBERS = (_State.JOINING, _State.RECONCILING, _State.ACKNOWLEDGING, _State.STABLE)

CONSUMER_TRANSITIONS: Mapping[tuple[ConsumerState, ConsumerEvent], ConsumerState] = {
    (_State.UNSUBSCRIBED, _Event.SUBSCRIBED): _State.JOINING,
    (_State.FENCED, _Event.SUBSCRIBED): _State.JOINING,
    (_State.FENCED, _Event.LOST): _State.FENCED,
    (_State.JOINING, _Event.CONFIRMED): _State.STABLE,
    (_State.RECONCILING, _Event.RECONCILED): _State.ACKNOWLEDGING,
    (_State.ACKNOWLEDGING, _Event.ACKNOWLEDGED): _State.STABLE,
    **{(state, _Event.ASSIGNED): _State.RECONCILING for state in _MEMBERS},
    **{(state, _Event.LOST): _State.FENCED for state in _MEMBERS},
    **{(state, _Event.TAKEN_OVER): _State.FATAL for state in _MEMBERS},
    **{(state, _Event.LEFT): _State.UNSUBSCRIBED for state in _State},
}
"""What is not in it comes too late, and changes nothing."""
