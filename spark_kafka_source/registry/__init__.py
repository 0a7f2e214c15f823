"""The schema registry: its client, the schema ids in rows, and programs that read the rows."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.registry.cache import SharedCache
    from spark_kafka_source.registry.client import RegistryClient
    from spark_kafka_source.registry.config import (
        REGISTRY_OPTIONS,
        REGISTRY_TLS_OPTIONS,
        GlueConfig,
        RegistryConfig,
    )
    from spark_kafka_source.registry.confluent import ConfluentFraming, Indexes, Part
    from spark_kafka_source.registry.errors import (
        IncompatibleSchemaError,
        InvalidSchemaError,
        RegistryDeniedError,
        RegistryError,
        RegistryUnavailableError,
        SchemaNotFoundError,
    )
    from spark_kafka_source.registry.framing import (
        Framed,
        Framing,
        Misframed,
        NoFraming,
        SchemaKey,
    )
    from spark_kafka_source.registry.glue import GlueClient, client_of
    from spark_kafka_source.registry.other_framings import ApicurioFraming, GlueFraming, hints
    from spark_kafka_source.registry.programs import (
        RowPrograms,
        SchemaSource,
        ShippedSchemas,
        WriterPrograms,
    )
    from spark_kafka_source.registry.row_headers import (
        ColumnRowHeaders,
        HeaderValues,
        LocatedRowHeaders,
        RowHeaders,
    )
    from spark_kafka_source.registry.schemas import (
        ApicurioId,
        RegisteredSchema,
        SchemaId,
        SchemaReference,
    )

__all__ = [
    "REGISTRY_OPTIONS",
    "REGISTRY_TLS_OPTIONS",
    "ApicurioFraming",
    "ApicurioId",
    "ColumnRowHeaders",
    "ConfluentFraming",
    "Framed",
    "Framing",
    "GlueClient",
    "GlueConfig",
    "GlueFraming",
    "HeaderValues",
    "IncompatibleSchemaError",
    "Indexes",
    "InvalidSchemaError",
    "LocatedRowHeaders",
    "Misframed",
    "NoFraming",
    "Part",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryConfig",
    "RegistryDeniedError",
    "RegistryError",
    "RegistryUnavailableError",
    "RowHeaders",
    "RowPrograms",
    "SchemaId",
    "SchemaKey",
    "SchemaNotFoundError",
    "SchemaReference",
    "SchemaSource",
    "SharedCache",
    "ShippedSchemas",
    "WriterPrograms",
    "client_of",
    "hints",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "client": "RegistryClient",
            "config": "REGISTRY_OPTIONS REGISTRY_TLS_OPTIONS GlueConfig RegistryConfig",
            "confluent": "ConfluentFraming Indexes Part",
            "errors": (
                "IncompatibleSchemaError InvalidSchemaError RegistryDeniedError RegistryError "
                "RegistryUnavailableError SchemaNotFoundError"
            ),
            "framing": "Framed Framing Misframed NoFraming SchemaKey",
            "glue": "GlueClient client_of",
            "other_framings": "ApicurioFraming GlueFraming hints",
            "cache": "SharedCache",
            "programs": "RowPrograms SchemaSource ShippedSchemas WriterPrograms",
            "row_headers": "ColumnRowHeaders HeaderValues LocatedRowHeaders RowHeaders",
            "schemas": "ApicurioId RegisteredSchema SchemaId SchemaReference",
        },
    )
