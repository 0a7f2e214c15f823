"""The error for an error code in an answer: what the broker said, and advice for the user.

A denial's advice names the right that the user lacks. See
https://kafka.apache.org/documentation/#operations_resources_and_protocols
"""

from collections.abc import Mapping
from enum import Enum, auto

from spark_kafka_source.errors import (
    BrokerError,
    ErrorCode,
    TopicNotFoundError,
    error_code,
    error_named,
)


class Access(Enum):
    """The use that a client wants to make of topics."""

    READ = auto()
    WRITE = auto()
    ADMIN = auto()
    """To read their state. Each request about a group needs another right, so texts name none."""


CREATE_IT = "Create it, as with `spark-kafka-source topics create` or `KafkaAdmin.create_topic`"
"""The advice for a topic that does not exist."""

_UNKNOWN_TOPIC = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_TO_READ_TOPICS = {
    "TOPIC_AUTHORIZATION_FAILED": (
        "READ on topic {topic!r} (DESCRIBE comes with it). Have it granted, or leave the topic out"
    ),
}
_TO_USE_TRANSACTIONS = {
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "WRITE on transactional id {transactional_id!r} (DESCRIBE comes with it). Have it granted, "
        "or give another 'kafka.transactional.id'"
    ),
}
_RIGHTS: Mapping[Access, Mapping[str, str]] = {
    Access.ADMIN: _TO_READ_TOPICS,
    Access.READ: {
        **_TO_READ_TOPICS,
        "GROUP_AUTHORIZATION_FAILED": (
            "READ on group {group_id!r} (DESCRIBE comes with it). Have it granted, or give another "
            "'kafka.group.id'"
        ),
        **_TO_USE_TRANSACTIONS,
    },
    Access.WRITE: {
        "TOPIC_AUTHORIZATION_FAILED": (
            "WRITE on topic {topic!r} (DESCRIBE comes with it), and CREATE where the topic has to "
            "be created. Have it granted, or write to another topic"
        ),
        "GROUP_AUTHORIZATION_FAILED": (
            "READ on group {group_id!r} (DESCRIBE comes with it) to commit its offsets. Have it "
            "granted, or leave the offsets out"
        ),
        "CLUSTER_AUTHORIZATION_FAILED": (
            "IDEMPOTENT_WRITE on the cluster, or, from Kafka 2.8 on, WRITE on any topic. Have it "
            "granted, or set 'kafka.enable.idempotence' to false"
        ),
        **_TO_USE_TRANSACTIONS,
    },
}
"""The needed right and the advice, by the name of the error."""


def missing_right(
    error: ErrorCode,
    *,
    topic: str = "",
    group_id: str = "",
    transactional_id: str = "",
    access: Access = Access.READ,
) -> str | None:
    """Return the right that the user needs after a denial, with advice.

    The error decides which of the names is in the text. Returns None for an error that is no
    denial, and if that name is not given.
    """
    needed = _RIGHTS[access].get(error.name)
    if needed is None:
        return None
    names = {"topic": topic, "group_id": group_id, "transactional_id": transactional_id}
    if not all(given for name, given in names.items() if f"{{{name}" in needed):
        return None
    return f"the user needs {needed.format(**names)}"


def refusal(
    code: int | ErrorCode,
    what: str,
    message: str | None = None,
    *,
    advice: str | None = None,
    topic: str = "",
    group_id: str = "",
    transactional_id: str = "",
    access: Access = Access.READ,
) -> BrokerError:
    """Return the error for a code in the answer to the request that `what` names.

    `message` is the broker's own text. After it comes `advice`, or for a denial the right that the
    user lacks (see `missing_right`).
    """
    error = code if isinstance(code, ErrorCode) else error_code(code)
    advice = advice or missing_right(
        error, topic=topic, group_id=group_id, transactional_id=transactional_id, access=access
    )
    text = (message or "").strip().rstrip(".")
    if text and advice:
        advice = advice[0].upper() + advice[1:]
    return BrokerError(error, what, ". ".join(filter(None, (text, advice))) or None)


def topic_failure(error: ErrorCode, topic: str) -> BrokerError:
    """Return the error for a topic that a broker does not describe, with the reason."""
    if error == _UNKNOWN_TOPIC:
        return TopicNotFoundError(topic)
    return refusal(error, f"Metadata of {topic}", topic=topic)
