"""States of a classic member and the events that change them, in one table."""

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """States as in Kafka's `MemberState`, with FENCED and ASSIGNED added."""

    UNJOINED = "in no generation; the next poll begins to join one"
    PREPARING_REBALANCE = "JoinGroup: the coordinator gathers the members"
    COMPLETING_REBALANCE = "SyncGroup: the leader divides the partitions"
    FENCED = "another member has its instance id; it can only leave"
    ASSIGNED = "in a generation; the next poll takes its assignment over"
    STABLE = "in a generation, with its assignment"


class Event(Enum):
    """An event in the life of a member."""

    PREPARED = "the member gave up what it had to, and wants to join"
    JOINED = "JoinGroup was answered"
    SYNCED = "SyncGroup was answered"
    TAKEN_OVER = "the listener was told of the assignment"
    JOIN_AGAIN = "the generation failed to form"
    GENERATION_LOST = "the coordinator does not know the member's generation"
    MEMBER_LOST = "the coordinator does not know the member"
    FENCED = "another member joined with the same instance id"
    FAILED = "an error must be raised first"
    LEFT = "the member leaves the group, or closes"


class Keep(Enum):
    """The part of its identity that a member keeps after an event."""

    ALL = "its member id and its generation"
    MEMBER_ID = "its member id"
    NOTHING = "nothing"


_FROM_ANYWHERE: Mapping[Event, tuple[State, Keep]] = {
    Event.GENERATION_LOST: (State.UNJOINED, Keep.MEMBER_ID),
    Event.MEMBER_LOST: (State.UNJOINED, Keep.NOTHING),
    Event.FENCED: (State.FENCED, Keep.NOTHING),
    Event.LEFT: (State.UNJOINED, Keep.NOTHING),
}

TRANSITIONS: Mapping[tuple[State, Event], tuple[State, Keep]] = {
    (State.UNJOINED, Event.PREPARED): (State.PREPARING_REBALANCE, Keep.ALL),
    (State.STABLE, Event.PREPARED): (State.PREPARING_REBALANCE, Keep.ALL),
    (State.PREPARING_REBALANCE, Event.JOINED): (State.COMPLETING_REBALANCE, Keep.ALL),
    (State.PREPARING_REBALANCE, Event.JOIN_AGAIN): (State.PREPARING_REBALANCE, Keep.ALL),
    (State.PREPARING_REBALANCE, Event.FAILED): (State.UNJOINED, Keep.ALL),
    (State.COMPLETING_REBALANCE, Event.SYNCED): (State.ASSIGNED, Keep.ALL),
    (State.COMPLETING_REBALANCE, Event.JOIN_AGAIN): (State.PREPARING_REBALANCE, Keep.ALL),
    (State.COMPLETING_REBALANCE, Event.FAILED): (State.UNJOINED, Keep.ALL),
    (State.ASSIGNED, Event.TAKEN_OVER): (State.STABLE, Keep.ALL),
    (State.ASSIGNED, Event.FAILED): (State.ASSIGNED, Keep.ALL),
    (State.STABLE, Event.FAILED): (State.STABLE, Keep.ALL),
    **{
        (state, event): after
        for state in State
        for event, after in _FROM_ANYWHERE.items()
        if state is not State.FENCED or event is Event.LEFT
    },
}
"""The state after an event.

An event that is not in the table comes too late and changes nothing.
"""
