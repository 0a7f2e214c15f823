"""States of a KIP-848 member and the events that change them, in one table."""

from collections.abc import Mapping
from enum import Enum


class ConsumerState(Enum):
    """States as in Kafka's `MemberState`."""

    UNSUBSCRIBED = "not a member; the next poll joins if there is a subscription"
    JOINING = "it asks to be a member, with epoch 0"
    RECONCILING = "its target has changed; the next poll takes the target over"
    ACKNOWLEDGING = "it owns its target, and tells the coordinator"
    STABLE = "it owns its target, and the coordinator knows"
    FENCED = "the coordinator does not know it; the next poll gives everything up as lost"
    FATAL = "another member has its instance id; it can only leave"


class ConsumerEvent(Enum):
    """An event in the life of a member."""

    SUBSCRIBED = "the member wants to join"
    ASSIGNED = "the coordinator sends a target that the member does not own yet"
    CONFIRMED = "the coordinator sends a target that the member owns already"
    RECONCILED = "the member owns its target"
    ACKNOWLEDGED = "the coordinator knows that the member owns its target"
    LOST = "the coordinator does not know the member in its epoch, or the member did not poll"
    TAKEN_OVER = "another member has the same instance id"
    LEFT = "the member leaves the group, or closes"


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
"""The state after an event.

An event that is not in the table comes too late and changes nothing.
"""
