"""What a leader's answer about a batch means for it, in one table.

https://cwiki.apache.org/confluence/display/KAFKA/KIP-360 says what is done about lost sequences.
"""

from enum import Enum, auto

from spark_kafka_source.errors import ErrorCode


class Reaction(Enum):
    """What is done about a batch."""

    DELIVERED = auto()
    RETRY = auto()
    FOLLOW = auto()
    """Sent again behind one before it, because of which it failed: that is no try of its own."""
    RENUMBER = auto()
    """Sent again with a new epoch, from sequence 0 on: the leader does not know the old ones."""
    SPLIT = auto()
    LEAVE_OUT = auto()
    """Sent again without the records that the broker names."""
    FAIL = auto()


_REACTIONS = {
    "NONE": Reaction.DELIVERED,
    # It was written the first time, and the answer was lost.
    "DUPLICATE_SEQUENCE_NUMBER": Reaction.DELIVERED,
    "MESSAGE_TOO_LARGE": Reaction.SPLIT,
    "RECORD_LIST_TOO_LARGE": Reaction.SPLIT,
    "INVALID_RECORD": Reaction.LEAVE_OUT,
    "INVALID_TIMESTAMP": Reaction.LEAVE_OUT,
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Reaction.RENUMBER,
    "UNKNOWN_PRODUCER_ID": Reaction.RENUMBER,
    "INVALID_PRODUCER_EPOCH": Reaction.RENUMBER,
    "INVALID_PRODUCER_ID_MAPPING": Reaction.RENUMBER,
}
_OUT_OF_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


def reaction(error: ErrorCode, *, is_first: bool, may_renumber: bool) -> Reaction:
    """Return what to do about a batch that was answered with this error.

    `is_first` says that no batch before it is unfinished: behind such a batch, a sequence out of
    order follows from that batch's own failure. `may_renumber` is of a producer without
    transactions: within one, a lost sequence means that the transaction has to be aborted.
    """
    found = _REACTIONS.get(error.name)
    if found is Reaction.RENUMBER:
        if error.name == _OUT_OF_ORDER and not is_first:
            return Reaction.FOLLOW
        return Reaction.RENUMBER if may_renumber else Reaction.FAIL
    if found is None:
        return Reaction.RETRY if error.retriable else Reaction.FAIL
    return found
