"""Settings of a read of topics: those of a consumer that has no group and does not poll."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spark_kafka_source.client import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.client.arguments import Vocabulary, numbered
from spark_kafka_source.client.without_effect import by_option
from spark_kafka_source.consumer.consumer_config import PollConfig
from spark_kafka_source.consumer.without_effect import (
    DONE_ANYWAY,
    INSTEAD,
    MEANT_BY_OTHERS,
    OF_A_CONSUMER,
    REFUSED,
)
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.groups import GroupConfig
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.settings import settings_of
from spark_kafka_source.spelling import Spelling, spelt
from spark_kafka_source.typed import BAD_RECORDS, MEANT, READ_OPTIONS, BadRecords, TypedConfig

_KNOWN = frozenset({*CLIENT_OPTIONS, *settings_of(FetchConfig)})
_INSTEAD = by_option(
    {
        "Give the topics as `topic`": "topics subscribe assign",
        "Give the start as `start`": "begin since starting.offsets starting.timestamp",
        "Give the end, which is not included, as `to`": """
            end stop until ending.offsets ending.timestamp
            """,
        "Take batches of `read_topic_batches` until there is enough": "limit max.records n",
    }
)
_NO_FUNCTIONS = "The table has bytes, or typed values: see 'value.format'"

VOCABULARY = Vocabulary(
    "read of a topic",
    _KNOWN,
    MappingProxyType(
        {
            **OF_A_CONSUMER,
            **dict.fromkeys(
                (*settings_of(GroupConfig), *settings_of(PollConfig)),
                "a read of a topic joins no group, and commits nothing",
            ),
            "kafka.auto.offset.reset": "`start` says where the read begins",
            "kafka.max.poll.records": "the whole topic is read",
            "kafka.allow.auto.create.topics": "a read creates no topic",
        }
    ),
    MappingProxyType(
        {
            **REFUSED,
            "kafka.key.deserializer": _NO_FUNCTIONS,
            "kafka.value.deserializer": _NO_FUNCTIONS,
        }
    ),
    MappingProxyType(
        {
            **DONE_ANYWAY,
            "kafka.enable.auto.commit": "false",
            "kafka.auto.offset.reset": "earliest",
            "kafka.allow.auto.create.topics": "false",
        }
    ),
    MEANT_BY_OTHERS,
    {**INSTEAD, **MEANT, **_INSTEAD},
    READ_OPTIONS,
)
"""Vocabulary of a read: its known, refused and ineffective settings."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Configuration of a read. `spelling` is how the user wrote the names of settings."""

    client: ClientConfig
    fetch: FetchConfig
    typed: TypedConfig
    spelling: Spelling

    @classmethod
    def from_arguments(
        cls, arguments: Mapping[str, object], token_provider: TokenProvider | None
    ) -> "TopicConfig":
        """Read the settings under Kafka's names, with underscores or dots.

        Raises `ConfigurationError` with the name as the user wrote it.
        """
        spelling = VOCABULARY.spelling(arguments)
        with spelt(spelling):
            settings = VOCABULARY.settings(arguments)
            client = ClientConfig.from_settings(settings, token_provider)
            typed = TypedConfig.from_settings(settings)
            if typed.bad_records is BadRecords.TOPIC:
                expected = "A read writes nothing: give 'fail', 'skip' or 'null'"
                raise ConfigurationError(BAD_RECORDS, "found 'topic'", expected)
            return cls(
                numbered(client, settings, ""), FetchConfig.from_settings(settings), typed, spelling
            )
