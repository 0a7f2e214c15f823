"""Patience with topics that a broker does not know: another one may."""

from collections.abc import Callable
from typing import TypeVar

from spark_kafka_source.errors import BrokerError, Remedy, error_named
from spark_kafka_source.net import Conversation, Deadline

T = TypeVar("T")

UNKNOWN_TOPIC = frozenset(
    {
        error_named("UNKNOWN_TOPIC_OR_PARTITION"),
        error_named("UNKNOWN_TOPIC_ID"),
        error_named("INCONSISTENT_TOPIC_ID"),
    }
)
"""Error codes of a topic that is gone, or that a broker does not know yet."""

# These take some two seconds, with pauses that double from a tenth of a second.
_MOST_REFUSALS = 5


def patient(
    attempt: Callable[[Deadline], Conversation[T]],
) -> Callable[[Deadline], Conversation[T]]:
    """Return the same attempt, but a topic that stays unknown becomes an error without remedy.

    Brokers learn of a topic one after another. So a topic that one broker does not know may exist.
    """
    refusals = 0

    async def watched(deadline: Deadline) -> T:
        nonlocal refusals
        try:
            return await attempt(deadline)
        except BrokerError as error:
            refusals += error.error in UNKNOWN_TOPIC
            if error.error in UNKNOWN_TOPIC and refusals > _MOST_REFUSALS:
                error.remedy = Remedy.NONE
            raise

    return watched
