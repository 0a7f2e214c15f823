"""Records with typed keys and values: how their bytes are decoded, and what is bad of them."""

from spark_kafka_source.typed.columns import (
    ERROR_TYPE,
    TypedColumns,
    TypedPart,
    TypedRecords,
    error_column,
)
from spark_kafka_source.typed.config import (
    BAD_RECORDS,
    PARTS,
    BadRecords,
    Format,
    FormatConfig,
    TypedConfig,
)
from spark_kafka_source.typed.encoding import TypedEncoding
from spark_kafka_source.typed.errors import BadRecordError
from spark_kafka_source.typed.options import MEANT, READ_OPTIONS, WRITE_OPTIONS
from spark_kafka_source.typed.plan import plan_columns
from spark_kafka_source.typed.subjects import RegistrationConfig, SubjectConfig, SubjectNameStrategy
from spark_kafka_source.typed.writing import TypedWrite, TypedWriteConfig, plan_writes

__all__ = [
    "BAD_RECORDS",
    "ERROR_TYPE",
    "MEANT",
    "PARTS",
    "READ_OPTIONS",
    "WRITE_OPTIONS",
    "BadRecordError",
    "BadRecords",
    "Format",
    "FormatConfig",
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
    "plan_columns",
    "plan_writes",
]
