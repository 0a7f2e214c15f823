"""Records with typed keys and values: how their bytes are decoded, and what is bad of them."""

from typing import TYPE_CHECKING

from spark_kafka_source.lazily import importing

if TYPE_CHECKING:
    from spark_kafka_source.typed.columns import TypedColumns, TypedPart, TypedRecords
    from spark_kafka_source.typed.config import (
        BAD_RECORDS,
        PARTS,
        BadRecords,
        Format,
        FormatConfig,
        TypedConfig,
        TypedWriteConfig,
    )
    from spark_kafka_source.typed.errors import BadRecordError
    from spark_kafka_source.typed.plan import plan_columns
    from spark_kafka_source.typed.subjects import (
        RegistrationConfig,
        SubjectConfig,
        SubjectNameStrategy,
    )
    from spark_kafka_source.typed.writing import TypedWrite, plan_writes

__all__ = [
    "BAD_RECORDS",
    "PARTS",
    "BadRecordError",
    "BadRecords",
    "Format",
    "FormatConfig",
    "RegistrationConfig",
    "SubjectConfig",
    "SubjectNameStrategy",
    "TypedColumns",
    "TypedConfig",
    "TypedPart",
    "TypedRecords",
    "TypedWrite",
    "TypedWriteConfig",
    "plan_columns",
    "plan_writes",
]

if not TYPE_CHECKING:
    __getattr__ = importing(
        __name__,
        {
            "BAD_RECORDS": "config",
            "BadRecordError": "errors",
            "BadRecords": "config",
            "Format": "config",
            "FormatConfig": "config",
            "PARTS": "config",
            "RegistrationConfig": "subjects",
            "SubjectConfig": "subjects",
            "SubjectNameStrategy": "subjects",
            "TypedColumns": "columns",
            "TypedConfig": "config",
            "TypedPart": "columns",
            "TypedRecords": "columns",
            "TypedWrite": "writing",
            "TypedWriteConfig": "config",
            "plan_columns": "plan",
            "plan_writes": "writing",
        },
    )
