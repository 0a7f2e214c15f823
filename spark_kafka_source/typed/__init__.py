"""Records with typed keys and values: their decoding and encoding, and bad records."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.typed.config import (
        BAD_RECORDS,
        BAD_RECORDS_TOPIC,
        PARTS,
        BadRecords,
        TypedConfig,
        TypedWriteConfig,
        error_column,
        letters_are_read,
    )
    from spark_kafka_source.typed.decoding import (
        ERROR_TYPE,
        TypedColumns,
        TypedPart,
        TypedRecords,
    )
    from spark_kafka_source.typed.encoding import TypedEncoding
    from spark_kafka_source.typed.errors import BadRecordError
    from spark_kafka_source.typed.format_config import Format, FormatConfig
    from spark_kafka_source.typed.letters import Letters
    from spark_kafka_source.typed.options import READ_OPTIONS, TYPED_OPTIONS, WRITE_OPTIONS
    from spark_kafka_source.typed.reading import plan_columns
    from spark_kafka_source.typed.subjects import (
        RegistrationConfig,
        SubjectConfig,
        SubjectNameStrategy,
    )
    from spark_kafka_source.typed.writing import TypedWrite, plan_writes

__all__ = [
    "BAD_RECORDS",
    "BAD_RECORDS_TOPIC",
    "ERROR_TYPE",
    "PARTS",
    "READ_OPTIONS",
    "TYPED_OPTIONS",
    "WRITE_OPTIONS",
    "BadRecordError",
    "BadRecords",
    "Format",
    "FormatConfig",
    "Letters",
    "RegistrationConfig",
    "SubjectConfig",
    "SubjectNameStrategy",
    "TypedColumns",
    "TypedConfig",
    "TypedEncoding",
    "TypedPart",
    "TypedRecords",
    "TypedWrite",
    "TypedWriteConfig",
    "error_column",
    "letters_are_read",
    "plan_columns",
    "plan_writes",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "decoding": "ERROR_TYPE TypedColumns TypedPart TypedRecords",
            "config": (
                "BAD_RECORDS BAD_RECORDS_TOPIC BadRecords PARTS TypedConfig TypedWriteConfig "
                "error_column letters_are_read"
            ),
            "encoding": "TypedEncoding",
            "errors": "BadRecordError",
            "format_config": "Format FormatConfig",
            "letters": "Letters",
            "options": "READ_OPTIONS TYPED_OPTIONS WRITE_OPTIONS",
            "reading": "plan_columns",
            "subjects": "RegistrationConfig SubjectConfig SubjectNameStrategy",
            "writing": "TypedWrite plan_writes",
        },
    )
