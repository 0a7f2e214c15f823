"""Options for the subjects of schemas, such as `value.subject.name.strategy`, and registration."""

from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.declaration import option
from spark_kafka_source.options.kinds import boolean, choice


class SubjectNameStrategy(Enum):
    """Rule for the name of the subject under which a schema is looked up and registered."""

    TOPIC = "TopicNameStrategy"
    """`<topic>-value`."""
    RECORD = "RecordNameStrategy"
    """The full name of the Avro record or the Protobuf message."""
    TOPIC_RECORD = "TopicRecordNameStrategy"
    """`<topic>-<full name>`."""

    def __str__(self) -> str:
        return self.value

    def subject(self, part: str, topic: str | None, record_name: str | None) -> str:
        """Return the subject for `part`, which is `key` or `value`.

        Raises `ConfigurationError` if the strategy needs the topic or the name and it is unknown.
        """
        option = f"{part}.subject.name.strategy"
        if topic is None and self is not SubjectNameStrategy.RECORD:
            found = f"is {self}, and topics differ from row to row"
            expected = f"Give 'topic', '{SubjectNameStrategy.RECORD}', or '{part}.schema.subject'"
            raise ConfigurationError(option, found, expected)
        if not record_name and self is not SubjectNameStrategy.TOPIC:
            found = f"is {self}, and the schema has no name"
            raise ConfigurationError(option, found, f"Give '{SubjectNameStrategy.TOPIC}'")
        if self is SubjectNameStrategy.TOPIC:
            return f"{topic}-{part}"
        return record_name or "" if self is SubjectNameStrategy.RECORD else f"{topic}-{record_name}"


@dataclass(frozen=True, slots=True)
class SubjectConfig:
    """Subject of the schemas of a part. Its option names begin with `key.` or `value.`."""

    subject_name_strategy: SubjectNameStrategy = option(
        "subject.name.strategy",
        choice(SubjectNameStrategy.TOPIC),
        "how the subject of a schema is named",
    )


@dataclass(frozen=True, slots=True)
class RegistrationConfig:
    """What a writer may change in the registry. Its option names have no prefix."""

    auto_register_schemas: bool = option(
        "auto.register.schemas",
        boolean(False),
        "whether to register a schema that its subject does not have",
    )
    normalize_schemas: bool = option(
        "normalize.schemas",
        boolean(False),
        "whether the registry treats two spellings of the same schema as equal",
    )
