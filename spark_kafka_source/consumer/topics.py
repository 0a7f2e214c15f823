"""Look-ups of topics, and which of them are missing."""

from collections.abc import Collection
from functools import partial

from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.errors import error_named
from spark_kafka_source.net import Deadline

_DENIED = error_named("TOPIC_AUTHORIZATION_FAILED")


async def describe_topics(
    client: KafkaClient, names: Collection[str] | None, *, timeout_ms: int, create: bool = False
) -> list[Topic]:
    """Return the named topics, or all for None. Retry until there is an answer.

    With `create` a broker that creates topics creates missing ones, if this user may do so.
    """
    attempt = partial(described_once, client, names, create=create)
    return await client.retrying("Metadata", attempt, timeout_ms=timeout_ms)


async def described_once(
    client: KafkaClient, names: Collection[str] | None, deadline: Deadline, *, create: bool
) -> list[Topic]:
    """Return the topics as `describe_topics`, from one try."""
    topics = await client.topics(names, deadline, create=create)
    if create and any(topic.error == _DENIED for topic in topics):
        return await client.topics(names, deadline)  # A reader needs no right to create topics.
    return topics


class MissingTopics:
    """The topics that were missing at the last look. Looks repeat, so a user is told once."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def newly(self, topics: Collection[Topic]) -> list[Topic]:
        """Return the topics that have an error, and had none at the last look."""
        missing = [topic for topic in topics if topic.error.code]
        new = [topic for topic in missing if topic.name not in self._names]
        self._names -= {topic.name for topic in topics}
        self._names |= {topic.name for topic in missing}
        return new
