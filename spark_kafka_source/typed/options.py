"""All options for typed keys and values, for readers and for writers."""

from spark_kafka_source.options.declaration import Options, Use, for_use, options_of, used_by
from spark_kafka_source.registry import REGISTRY_OPTIONS
from spark_kafka_source.typed.config import BAD_RECORDS_OPTIONS, PARTS
from spark_kafka_source.typed.format_config import format_options
from spark_kafka_source.typed.subjects import RegistrationConfig, SubjectConfig

TYPED_OPTIONS: Options = {
    **{name: option for part in PARTS for name, option in format_options(part).items()},
    **BAD_RECORDS_OPTIONS,
    **for_use(REGISTRY_OPTIONS, Use.BOTH),
    **{
        name: option
        for part in PARTS
        for name, option in options_of(SubjectConfig, f"{part}.", Use.WRITE).items()
    },
    **options_of(RegistrationConfig, use=Use.WRITE),
}
"""The options for the formats of keys and values, and for the registry."""

READ_OPTIONS = used_by(TYPED_OPTIONS, Use.READ)
"""The options that `TypedConfig.from_settings` reads."""

WRITE_OPTIONS = used_by(TYPED_OPTIONS, Use.WRITE)
"""The options that `TypedWriteConfig.from_settings` reads."""
