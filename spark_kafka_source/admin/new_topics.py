"""The topics that a user wants to have, and the values of their configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret

ConfigValue = str | int | float | bool | Secret
"""The value of a configuration. A bool is `true` or `false` in Kafka."""

_MOST_PARTITIONS, _MOST_REPLICAS = (1 << 31) - 1, (1 << 15) - 1
_NOTHING: Mapping[str, ConfigValue] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create, in the terms of Kafka's `NewTopic`.

    `partitions` and `replication_factor` are by default what the brokers have
    (`num.partitions`, `default.replication.factor`; from Kafka 2.4 on). `configs` are the topic's:
    https://kafka.apache.org/documentation/#topicconfigs. `replicas` names the brokers of each
    partition by their node ids, the preferred leader first, in place of both numbers:
    `[[1, 2], [2, 3]]`.

    Raises `ConfigurationError`.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, ConfigValue] = field(default_factory=lambda: _NOTHING)
    replicas: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigurationError("name", f"found {self.name!r}", "Give the topic's name")
        given = {
            "partitions": (self.partitions, _MOST_PARTITIONS),
            "replication_factor": (self.replication_factor, _MOST_REPLICAS),
        }
        for option, (count, most) in given.items():
            if count is None:
                continue
            if self.replicas is not None:
                expected = "'replicas' tells it already: leave out one of them"
                raise ConfigurationError(option, "is given with 'replicas'", expected)
            check_count(option, count, most)
        config_texts(self.configs)


def check_count(option: str, count: object, most: int = _MOST_PARTITIONS) -> None:
    """Raise `ConfigurationError` unless it is a whole number from 1 to `most`."""
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= most:
        expected = f"Give a whole number from 1 to {most}"
        raise ConfigurationError(option, f"found {count!r}", expected)


def config_texts(configs: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the values as Kafka's texts. Raises `ConfigurationError` for other types."""
    return {name: config_text(name, value) for name, value in configs.items()}


def config_text(name: str, value: object) -> str:
    """Return one value as Kafka's text. Raises `ConfigurationError` for another type."""
    if isinstance(value, Secret):
        return value.reveal()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    found = f"{name!r} has a value of type {type(value).__name__}"
    raise ConfigurationError("configs", found, "Give a text, a number or a bool")
