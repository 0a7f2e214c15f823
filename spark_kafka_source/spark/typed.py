"""The options of typed keys and values, and of the registry that has their schemas."""

from typing import Any

from spark_kafka_source.net import TlsSettings
from spark_kafka_source.registry import RegistryConfig
from spark_kafka_source.spark.declaration import Option, Use, of_kafka
from spark_kafka_source.spark.kinds import parsed
from spark_kafka_source.typed import PARTS, FormatConfig

_REGISTRY = "schema.registry."

FORMATS: tuple[Option[Any], ...] = tuple(
    each for part in PARTS for each in of_kafka(FormatConfig, Use.READ, prefix=f"{part}.")
)
"""How keys and values are written."""

REGISTRY: tuple[Option[Any], ...] = (
    Option(
        f"{_REGISTRY}url",
        parsed("`https://host:port`, more by comma", lambda _, text: text),
        "the schema registry; with several, the next is asked where one does not answer",
        Use.READ,
    ),
    *of_kafka(RegistryConfig, Use.READ, prefix=_REGISTRY),
    *of_kafka(TlsSettings, Use.READ, prefix=_REGISTRY),
)
"""Where the registry is; its TLS is set as that of the brokers."""
