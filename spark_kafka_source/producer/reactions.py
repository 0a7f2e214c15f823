"""The reaction to a leader's answer about a batch, in one table.

KIP-360 has the remedy for lost sequences:
https://cwiki.apache.org/confluence/display/KAFKA/KIP-360
"""

from enum import Enum, auto

from spark_kafka_source.errors import ErrorCode


class Reaction(Enum):
    """The next step for a batch."""

    DELIVERED = auto()
    RETRY = auto()
    FOLLOW = auto()
    """Send again behind the earlier batch that made this one fail, without the usual pause."""
    RENUMBER = auto()
    """Send again with a new epoch and sequences from 0: the leader does not know the old ones."""
    SPLIT = auto()
    LEAVE_OUT = auto()
    """Send again without the records that the broker names."""
    FAIL = auto()


_REACTIONS = {
    "NONE": Reaction.DELIVERED,
    # The leader wrote the batch the first time, and the answer was lost.
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
    """Return the reaction to a batch that was answered with this error.

    `is_first` says that no earlier batch is unfinished. If one is, its failure explains a sequence
    out of order. `may_renumber` is true for a producer without transactions. In a transaction, a
    lost sequence means that the transaction must be aborted.
    """
    found = _REACTIONS.get(error.name)
    if found is Reaction.RENUMBER:
        if error.name == _OUT_OF_ORDER and not is_first:
            return Reaction.FOLLOW
        return Reaction.RENUMBER if may_renumber else Reaction.FAIL
    if found is None:
        return Reaction.RETRY if error.retriable else Reaction.FAIL
    return found
