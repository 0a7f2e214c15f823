"""How typed keys and values are written: `value.subject.name.strategy` and those beside it."""

from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.settings import setting


class SubjectNameStrategy(Enum):
    """What the subject is called under which a schema is looked up and registered."""

    TOPIC = "TopicNameStrategy"
    """`<topic>-value`."""
    RECORD = "RecordNameStrategy"
    """The full name of the record, or of the message."""
    TOPIC_RECORD = "TopicRecordNameStrategy"
    """`<topic>-<full name>`."""

    def __str__(self) -> str:
        return self.value

    def subject(self, part: str, topic: str | None, record_name: str | None) -> str:
        """Return the subject of a `part`, `key` or `value`.

        Raises `ConfigurationError` where the topic, or the name, is not known.
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
    """Under which subject the schemas of a part are; its settings' names begin with `value.`."""

    subject_name_strategy: SubjectNameStrategy = setting(
        SubjectNameStrategy.TOPIC, meaning="what the subject of a schema is called"
    )


@dataclass(frozen=True, slots=True)
class RegistrationConfig:
    """What may be done to the registry; its settings' names have no prefix."""

    auto_register_schemas: bool = setting(
        False, meaning="whether a schema that its subject does not have is registered"
    )
    normalize_schemas: bool = setting(
        False, meaning="whether the registry takes schemas for equal that are written in two ways"
    )
