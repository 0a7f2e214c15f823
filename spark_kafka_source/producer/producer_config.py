"""The configuration of a `KafkaProducer`: Kafka's names with underscores or dots."""

from collections.abc import Mapping
from dataclasses import replace

from spark_kafka_source.client.arguments import Vocabulary, numbered
from spark_kafka_source.client.sensor import SensorConfig
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.producer.config import PRODUCER_OPTIONS, ProducerConfig
from spark_kafka_source.producer.without_effect import (
    DONE_ANYWAY,
    MEANT_BY_OTHERS,
    OF_A_PRODUCER,
    REFUSED,
)
from spark_kafka_source.settings import settings_of
from spark_kafka_source.spelling import spelt
from spark_kafka_source.telemetry import TelemetryConfig
from spark_kafka_source.typed import MEANT, WRITE_OPTIONS, TypedWriteConfig

VOCABULARY = Vocabulary(
    "producer",
    PRODUCER_OPTIONS | settings_of(SensorConfig).keys() | settings_of(TelemetryConfig).keys(),
    OF_A_PRODUCER,
    REFUSED,
    DONE_ANYWAY,
    MEANT_BY_OTHERS,
    MEANT,
    WRITE_OPTIONS,
)
"""The setting names that a producer knows, refuses or ignores."""


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
