"""The options of typed keys and values, and of the registry that holds their schemas."""

from dataclasses import replace
from typing import Any

from spark_kafka_source.net import TlsSettings
from spark_kafka_source.registry import RegistryConfig
from spark_kafka_source.spark.declaration import Option, Use, of_kafka
from spark_kafka_source.spark.kinds import like, parsed
from spark_kafka_source.typed import (
    BAD_RECORDS,
    BAD_RECORDS_TOPIC,
    PARTS,
    BadRecords,
    FormatConfig,
    RegistrationConfig,
    SubjectConfig,
)
from spark_kafka_source.typed.config import TYPINGS

_REGISTRY = "schema.registry."


_USES = {"fields": Use.READ, "ignore.fields": Use.WRITE}
"""The options that are only for readers, or only for writers."""


def _of_part(part: str) -> tuple[Option[Any], ...]:
    prefix = f"{part}."
    options = [*of_kafka(FormatConfig, Use.BOTH, prefix=prefix)]
    for typing in TYPINGS.values():
        options += of_kafka(typing, Use.BOTH, prefix=prefix)
    return tuple(
        replace(each, use=_USES.get(each.name.removeprefix(prefix), each.use)) for each in options
    )


OPTIONS: tuple[Option[Any], ...] = (
    *(each for part in PARTS for each in _of_part(part)),
    Option(
        BAD_RECORDS,
        like(BadRecords.FAIL),
        "the handling of a record whose key or value cannot be decoded: an error, null with its "
        "bytes in `value_error`, the record is left out, or it goes to `badRecords.topic`",
    ),
    Option(
        BAD_RECORDS_TOPIC,
        parsed("a topic's name", lambda _, text: text),
        "the topic of dead letters, for the records that cannot be decoded; it must exist",
    ),
    Option(
        f"{_REGISTRY}url",
        parsed("`https://host:port`, or several separated by commas", lambda _, text: text),
        "the schema registry; if one address does not answer, the next is asked",
        Use.BOTH,
    ),
    *of_kafka(RegistryConfig, Use.BOTH, prefix=_REGISTRY),
    *(each for part in PARTS for each in of_kafka(SubjectConfig, Use.WRITE, prefix=f"{part}.")),
    *of_kafka(RegistrationConfig, Use.WRITE, prefix=""),
)
"""The options for the formats of keys and values, and for the registry."""

OF_TLS = of_kafka(TlsSettings, Use.BOTH, prefix=_REGISTRY)
"""The settings of the registry's TLS, with the same names as those of the brokers."""
