"""The configuration of a `KafkaProducer`: Kafka's names with underscores or dots."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from spark_kafka_source.client.arguments import Vocabulary, numbered
from spark_kafka_source.client.sensor import SensorConfig
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.options.declaration import Use, options_of
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.producer.config import PRODUCER_OPTIONS, ProducerConfig
from spark_kafka_source.spelling import spelt
from spark_kafka_source.telemetry import TelemetryConfig
from spark_kafka_source.typed import WRITE_OPTIONS, TypedWriteConfig

VOCABULARY = Vocabulary(
    "producer",
    {**PRODUCER_OPTIONS, **options_of(SensorConfig), **options_of(TelemetryConfig)},
    partial(other_names, Use.PRODUCER),
    WRITE_OPTIONS,
)
"""The names of a producer's options, and what is known of others."""


def config_from_arguments(
    arguments: Mapping[str, object], token_provider: TokenProvider | None = None
) -> ProducerConfig:
    """Return the configuration from these arguments. Later errors use the names as given.

    Raises `ConfigurationError` under the given name.
    """
    with spelt(VOCABULARY.spelling(arguments)):
        settings = VOCABULARY.settings(arguments)
        config = ProducerConfig.from_settings(settings, token_provider)
        client = numbered(config.client, settings, config.transactional_id)
        return replace(
            config,
            client=client,
            typed=TypedWriteConfig.from_settings(settings),
            sensors=settings.read(SensorConfig),
            telemetry=settings.read(TelemetryConfig),
        )
