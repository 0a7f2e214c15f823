"""The topic-partitions that a source reads: `assign`, `subscribe` or `subscribePattern`.

`partitions` selects a part of the last two.
"""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import lru_cache

from spark_kafka_source.client import Topic
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import Option, Settings
from spark_kafka_source.options.kinds import TOPIC_NAME, TOPIC_NAMES, parsed
from spark_kafka_source.spark import source
from spark_kafka_source.spark.source.offsets import MAX_PARTITION, parse_json_option
from spark_kafka_source.topic_partition import TopicPartition

_BY_COMMA = "Give topics separated by commas, as in 'events,orders'"


@dataclass(frozen=True, slots=True)
class Assign:
    """Exactly these topic-partitions, `{"topic": [0, 1]}`."""

    topic_partitions: tuple[TopicPartition, ...]
    option = "assign"

    @property
    def topic_names(self) -> list[str]:
        """The topics to ask the brokers for."""
        return sorted({partition.topic for partition in self.topic_partitions})

    def names(self, topic: str) -> bool:
        """Whether the topic is one of these, if it exists."""
        return topic in self.topic_names

    def has(self, where: TopicPartition) -> bool:
        """Whether the partition is one of these, if it exists."""
        return where in self.topic_partitions

    def wants(self, _: Topic) -> bool:
        """Return True: the client asks only for these topics."""
        return True

    def select(
        self, topics: Iterable[Topic], known: Container[TopicPartition] = ()
    ) -> list[TopicPartition]:
        """Return the existing ones. Raises `ConfigurationError` for others that are not `known`.

        A `known` partition existed before.
        """
        existing = {partition for topic in topics for partition in topic.topic_partitions}
        for partition in self.topic_partitions:
            if partition not in existing and partition not in known:
                count = sum(other.topic == partition.topic for other in existing)
                raise ConfigurationError(
                    self.option,
                    "{} does not exist",
                    f"The topic has partitions 0 to {count - 1}",
                    str(partition),
                )
        return [partition for partition in self.topic_partitions if partition in existing]

    @classmethod
    def parse(cls, text: str) -> "Assign":
        """Parse the option's text. Raises `ConfigurationError` unless it is JSON of that form."""
        expected = "Give JSON as in '{\"topic\":[0,1]}'"
        topics = parse_json_option(cls.option, text, expected)
        if not isinstance(topics, dict) or not all(
            isinstance(partitions, list) for partitions in topics.values()
        ):
            raise ConfigurationError(cls.option, "found {}", expected, text)
        pairs = [
            (topic, partition) for topic, partitions in topics.items() for partition in partitions
        ]
        if not pairs or not all(_is_partition(partition) for _, partition in pairs):
            raise ConfigurationError(cls.option, "found {}", expected, text)
        return cls(tuple(sorted({TopicPartition(*pair) for pair in pairs})))


def _is_partition(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_PARTITION


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics, `topic1,topic2`."""

    topics: tuple[str, ...]
    option = "subscribe"

    @property
    def topic_names(self) -> list[str]:
        """The topics to ask the brokers for."""
        return list(self.topics)

    def names(self, topic: str) -> bool:
        """Whether the topic is one of these, if it exists."""
        return topic in self.topic_names

    def has(self, where: TopicPartition) -> bool:
        """Whether the partition is of one of these topics."""
        return self.names(where.topic)

    def wants(self, _: Topic) -> bool:
        """Return True: the client asks only for these topics."""
        return True

    def select(
        self, topics: Iterable[Topic], _: Container[TopicPartition] = ()
    ) -> list[TopicPartition]:
        """Return all partitions of these topics."""
        return [partition for topic in topics for partition in topic.topic_partitions]

    @classmethod
    def parse(cls, text: str) -> "Subscribe":
        """Parse the option's text. Raises `ConfigurationError` for a missing or impossible name.

        Blanks around a comma are ignored, as in Spark's own connector. That connector also ignores
        a missing name. Here it is an error: it may stand for a variable without a value.
        """
        names = [name.strip() for name in text.split(",")]
        if not any(names):
            raise ConfigurationError(cls.option, "names no topic", _BY_COMMA)
        if not all(names):
            found = "found {}, where a name is missing before or after a comma"
            raise ConfigurationError(cls.option, found, _BY_COMMA, text)
        for name in names:
            if not re.fullmatch(TOPIC_NAME, name):
                expected = f"{TOPIC_NAMES}. {_BY_COMMA}"
                raise ConfigurationError(cls.option, "{} cannot be a topic's name", expected, name)
        return cls(tuple(sorted(set(names))))


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of topics in whose name a regular expression is found, but internal ones.

    The expression is Java's, as in Spark's own connector. `b` is found in `abc`, too; `^b$` is not.
    """

    pattern: str
    option = "subscribePattern"

    @property
    def topic_names(self) -> None:
        """None: the client asks for all topics."""
        return

    def names(self, topic: str) -> bool:
        """Whether a topic of this name matches."""
        return bool(_compiled(self.pattern).search(topic))

    def has(self, where: TopicPartition) -> bool:
        """Whether the partition's topic matches."""
        return self.names(where.topic)

    def wants(self, topic: Topic) -> bool:
        """Whether the topic matches, and is not internal."""
        return self.names(topic.name) and not topic.is_internal

    def select(
        self, topics: Iterable[Topic], _: Container[TopicPartition] = ()
    ) -> list[TopicPartition]:
        """Return all partitions of the topics that match."""
        matching = [topic for topic in topics if self.wants(topic)]
        return [partition for topic in matching for partition in topic.topic_partitions]

    @classmethod
    def parse(cls, text: str) -> "SubscribePattern":
        """Parse the option's text. Raises `ConfigurationError` unless it is Java's expression.

        An expression without an equal in Python's `re` is refused, too.
        """
        if len(text) > _LONGEST_PATTERN:
            # A pattern of a megabyte takes ten seconds to compile.
            expected = f"Give at most {_LONGEST_PATTERN}"
            raise ConfigurationError(cls.option, f"has {len(text)} characters", expected)
        if not text.strip():
            raise ConfigurationError(cls.option, "is empty", "Give a pattern, as in 'events-.*'")
        try:
            _compiled(text)
        except source.PatternError as error:
            found = "{} cannot be used: " + error.found
            raise ConfigurationError(cls.option, found, error.instead, text, *error.parts) from None
        return cls(text)


@dataclass(frozen=True, slots=True)
class OnlyPartitions:
    """The partitions with these numbers, `0,2,8-15`, of a subscription to whole topics."""

    subscription: Subscribe | SubscribePattern
    numbers: tuple[range, ...]

    @property
    def option(self) -> str:
        """Name of the option that names the topics."""
        return self.subscription.option

    @property
    def topic_names(self) -> list[str] | None:
        """The topics to ask the brokers for."""
        return self.subscription.topic_names

    def names(self, topic: str) -> bool:
        """Whether the subscription names the topic."""
        return self.subscription.names(topic)

    def has(self, where: TopicPartition) -> bool:
        """Whether the subscription has the topic, and the partition has one of the numbers."""
        return self.subscription.has(where) and self._has_number(where)

    def _has_number(self, where: TopicPartition) -> bool:
        return any(where.partition in numbers for numbers in self.numbers)

    def wants(self, topic: Topic) -> bool:
        """Whether the subscription has the topic."""
        return self.subscription.wants(topic)

    def select(
        self, topics: Iterable[Topic], known: Container[TopicPartition] = ()
    ) -> list[TopicPartition]:
        """Return the subscription's partitions that have one of the numbers.

        Raises `ConfigurationError` if none has, and no partition is `known` to have existed.
        """
        partitions = self.subscription.select(topics, known)
        selected = [partition for partition in partitions if self._has_number(partition)]
        if partitions and not selected and not known:
            most = max(partition.partition for partition in partitions)
            raise ConfigurationError(
                _PARTITIONS.name, "selects none", f"The topics have partitions 0 to {most}"
            )
        return selected


Subscription = Assign | Subscribe | SubscribePattern | OnlyPartitions

_NO_TOPIC = "no topic is named"
_LONGEST_PATTERN = 10_000
_NUMBERS = r"\s*([0-9]{1,10})\s*(?:-\s*([0-9]{1,10})\s*)?"


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> "re.Pattern[str]":
    return source.compiled(pattern)  # Most readers have no pattern, and do not import this.


def _numbers(name: str, text: str) -> tuple[range, ...]:
    matches = [re.fullmatch(_NUMBERS, part) for part in text.split(",")]
    numbers = [range(int(match[1]), int(match[2] or match[1]) + 1) for match in matches if match]
    is_usable = len(numbers) == len(matches) and all(
        part and part.stop <= 2**31 for part in numbers
    )
    if not is_usable:
        raise ConfigurationError(
            name, "found {}", "Give numbers and ranges, as in '0,2,8-15'", text
        )
    return tuple(numbers)


_TOPICS: tuple[Option[Assign | Subscribe | SubscribePattern], ...] = (
    Option(
        "assign",
        parsed('JSON, `{"events": [0, 1]}`', lambda _, text: Assign.parse(text)),
        "read exactly these partitions",
    ),
    Option(
        "subscribe",
        parsed("names separated by commas, `events,orders`", lambda _, text: Subscribe.parse(text)),
        "the topics to read",
        instead="'topic' names the topic to write to",
    ),
    Option(
        "subscribePattern",
        parsed("a regular expression of Java's", lambda _, text: SubscribePattern.parse(text)),
        "read each topic in whose name the pattern is found, except Kafka's internal topics",
    ),
)
_PARTITIONS = Option(
    "partitions",
    parsed("numbers and ranges, `0,2,8-15`", _numbers),
    "read only the partitions with these numbers, in each topic",
)
SUBSCRIPTION = (*_TOPICS, _PARTITIONS)
"""Options of `parse_subscription`."""


def parse_subscription(settings: Settings) -> Subscription:
    """Parse the one subscription option that must be given."""
    given = [option for option in _TOPICS if settings.has(option.name)]
    names = ", ".join(f"'{option.name}'" for option in _TOPICS)
    if not given:
        found = "is missing, and 'topic' is for writing" if settings.has("topic") else _NO_TOPIC
        raise ConfigurationError(Subscribe.option, found, f"Give exactly one of {names}")
    if len(given) > 1:
        found = "given together with " + ", ".join(f"'{option.name}'" for option in given[1:])
        raise ConfigurationError(given[0].name, found, f"Give exactly one of {names}")
    subscription = given[0].of(settings)
    if not settings.has(_PARTITIONS.name):
        return subscription
    if isinstance(subscription, Assign):
        raise ConfigurationError(
            _PARTITIONS.name, "is given together with 'assign'", "Name the partitions there"
        )
    return OnlyPartitions(subscription, _PARTITIONS.of(settings))
