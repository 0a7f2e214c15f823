"""The check of a topic of dead letters, before a query or a consumer needs it.

Without the check a query would fail at its first bad record, perhaps after days.
"""

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.client.topic_rights import AclOperation, granted, topic_with_rights
from spark_kafka_source.denials import CREATE_IT, Access, missing_right, refusal
from spark_kafka_source.errors import (
    ConfigurationError,
    Remedy,
    error_code,
    error_named,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.typed import BAD_RECORDS_TOPIC

PATIENCE_MS = 2_000
"""How long a topic may be unknown: brokers hear late of a new one."""

_UNKNOWN_TOPIC = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_DENIED = error_named("TOPIC_AUTHORIZATION_FAILED")
_NO_NAME = error_named("INVALID_TOPIC_EXCEPTION")


async def check_topic(client: KafkaClient, topic: str) -> None:
    """Raise `ConfigurationError` unless the topic exists and the user may write to it.

    The topic is not created, even if brokers create topics by themselves: they would give it the
    default retention. Raises the errors of a request for metadata, too.
    """
    patience = Deadline.after_ms(PATIENCE_MS)

    async def attempt(deadline: Deadline) -> None:
        described = await topic_with_rights(client, topic, deadline)
        error = error_code(described.error_code) if described else _UNKNOWN_TOPIC
        if error == _UNKNOWN_TOPIC and patience.expired:
            expected = f"{CREATE_IT}. Or name one that exists"
            raise ConfigurationError(BAD_RECORDS_TOPIC, "topic {} does not exist", expected, topic)
        if error == _NO_NAME:
            found = "{} cannot be a topic's name"
            raise ConfigurationError(BAD_RECORDS_TOPIC, found, "Name one that exists", topic)
        may_write = None
        if described is not None and not error.code:
            may_write = granted(described, AclOperation.WRITE)
        if error == _DENIED or may_write is False:
            found = f"is denied: {missing_right(_DENIED, topic=topic, access=Access.WRITE)}"
            expected = "Bad records are written there, with the same user as the records are read"
            raise ConfigurationError(BAD_RECORDS_TOPIC, found, expected)
        if error.retriable and not patience.expired:
            failure = refusal(error, f"Metadata of {topic}")
            failure.remedy = Remedy.RETRY  # Leaders of other topics stay known.
            raise failure

    await client.retrying("Metadata", attempt)
