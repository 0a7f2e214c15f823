"""Records with typed keys and values: how their bytes are decoded, and what is bad of them."""

from spark_kafka_source.typed.columns import TypedColumns, TypedPart, TypedRecords
from spark_kafka_source.typed.config import (
    BAD_RECORDS,
    PARTS,
    BadRecords,
    Format,
    FormatConfig,
    TypedConfig,
)
from spark_kafka_source.typed.errors import BadRecordError
from spark_kafka_source.typed.plan import plan_columns
from spark_kafka_source.typed.subjects import RegistrationConfig, SubjectConfig, SubjectNameStrategy
from spark_kafka_source.typed.writing import TypedWrite, TypedWriteConfig, plan_writes

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
