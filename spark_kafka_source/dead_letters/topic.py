"""The check of a topic of dead letters, before a query or a consumer needs it.

Without the check a query would fail at its first bad record, perhaps after days.
"""

from dataclasses import replace

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.denials import Access, lacking
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    Remedy,
    UnsupportedVersionError,
    error_code,
    error_named,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from spark_kafka_source.typed import BAD_RECORDS_TOPIC

PATIENCE_MS = 2_000
"""How long a topic may be unknown: brokers hear late of a new one."""

_UNKNOWN_TOPIC = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_DENIED = error_named("TOPIC_AUTHORIZATION_FAILED")
_NO_NAME = error_named("INVALID_TOPIC_EXCEPTION")
# The bit of WRITE in the authorized operations (KIP-430), and their value if they are not told.
_WRITE, _NOT_TOLD = 4, -0x80000000


def check_topic(client: KafkaClient, topic: str) -> None:
    """Raise `ConfigurationError` unless the topic exists and the user may write to it.

    The topic is not created, even if brokers create topics by themselves: they would give it the
    default retention. Raises the errors of a request for metadata, too.
    """
    patience = Deadline.after_ms(PATIENCE_MS)

    def attempt(deadline: Deadline) -> None:
        found = _described(client, topic, deadline)
        error = error_code(found.error_code) if found else _UNKNOWN_TOPIC
        if error == _UNKNOWN_TOPIC and patience.expired:
            expected = "Create it, or name one that exists"
            raise ConfigurationError(BAD_RECORDS_TOPIC, "topic {} does not exist", expected, topic)
        if error == _NO_NAME:
            found_name = "{} cannot be a topic's name"
            raise ConfigurationError(BAD_RECORDS_TOPIC, found_name, "Name one that exists", topic)
        if error == _DENIED or (found and not _may_write(found)):
            found_right = f"is denied: {lacking(_DENIED, topic=topic, access=Access.WRITE)}"
            expected = "Bad records are written there, with the same user as the records are read"
            raise ConfigurationError(BAD_RECORDS_TOPIC, found_right, expected)
        if error.retriable and not patience.expired:
            failure = BrokerError(error, f"Metadata of {topic}")
            failure.remedy = Remedy.RETRY  # Leaders of other topics stay known.
            raise failure

    client.retrying("Metadata", attempt)


def _described(client: KafkaClient, topic: str, deadline: Deadline) -> MetadataResponseTopic | None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    try:
        answer = client.send_to_any(request, deadline)
    except UnsupportedVersionError:  # Brokers before Kafka 2.3 do not tell rights.
        request = replace(request, include_topic_authorized_operations=False)
        answer = client.send_to_any(request, deadline)
    return next((each for each in answer.topics if each.name == topic), None)


def _may_write(topic: MetadataResponseTopic) -> bool:
    operations = topic.topic_authorized_operations
    return bool(topic.error_code) or operations == _NOT_TOLD or bool(operations >> _WRITE & 1)
