"""Settings of a read of topics: those of a consumer that has no group and does not poll."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from spark_kafka_source.client import CLIENT_OPTIONS, ClientConfig
from spark_kafka_source.client.arguments import Vocabulary, numbered
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch.config import FetchConfig
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.options.declaration import Use, options_of
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.spelling import Spelling, spelt
from spark_kafka_source.typed import BAD_RECORDS, READ_OPTIONS, BadRecords, TypedConfig

VOCABULARY = Vocabulary(
    "read of a topic",
    {**CLIENT_OPTIONS, **options_of(FetchConfig)},
    partial(other_names, Use.TOPIC_READ),
    READ_OPTIONS,
)
"""The names of a read's options, and what is known of others."""


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
            fetch = replace(FetchConfig.from_settings(settings), chunk_bytes=typed.chunk_bytes)
            return cls(numbered(client, settings, ""), fetch, typed, spelling)
