"""The topics that a user wants to have, and the values of their configurations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any

from spark_kafka_source.errors import ConfigurationError, in_short
from spark_kafka_source.secret import Secret

ConfigValue = str | int | float | bool | Secret
"""The value of a configuration. A bool is `true` or `false` in Kafka."""

_MOST_PARTITIONS, _MOST_REPLICAS = (1 << 31) - 1, (1 << 15) - 1


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
    configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    replicas: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        check_name("name", self.name)
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
            object.__setattr__(self, option, whole_count(option, count, most))
        if self.replicas is not None:
            object.__setattr__(self, "replicas", _node_ids(self.replicas))
        check_configs("configs", self.configs)
        config_texts(self.configs)


def check_name(option: str, name: object) -> None:
    """Raise `ConfigurationError` unless it is a text with something in it."""
    if not isinstance(name, str) or not name:
        raise ConfigurationError(option, f"found {in_short(name)}", "Give the topic's name")


def topic_names(option: str, names: str | Iterable[str]) -> list[str]:
    """Return names without repetitions. A text is one name. Raises `ConfigurationError`."""
    if not isinstance(names, str | Iterable):
        raise ConfigurationError(option, f"found {in_short(names)}", "Give a list of names")
    as_list = [names] if isinstance(names, str) else list(names)
    for name in as_list:
        check_name(option, name)
    return list(dict.fromkeys(as_list))


def new_topics(topics: Any) -> list[NewTopic]:
    """Return topics to create. Raises `ConfigurationError` for another object."""
    is_many = isinstance(topics, Iterable) and not isinstance(topics, str)
    as_list = list(topics) if is_many else [topics]
    for topic in as_list if is_many else [None]:
        if not isinstance(topic, NewTopic):
            expected = "Give a list of NewTopic, as [NewTopic('events')]"
            raise ConfigurationError("topics", f"found {in_short(topics)}", expected)
    return as_list


def check_mapping(option: str, given: object, example: str) -> None:
    """Raise `ConfigurationError` unless it is a dict, as the example is."""
    if not isinstance(given, Mapping):
        # The type alone: a text may hold a password.
        problem = f"found a {type(given).__name__}"
        raise ConfigurationError(option, problem, f"Give a dict, as {example}")


def check_configs(option: str, configs: Any) -> None:
    """Raise `ConfigurationError` unless it is a dict with names of configurations as keys."""
    check_mapping(option, configs, "{'retention.ms': 86_400_000}")
    for name in configs:
        if not isinstance(name, str) or not name:
            expected = "Give names of configurations, as 'retention.ms'"
            raise ConfigurationError(option, f"found the name {in_short(name)}", expected)


def whole_count(option: str, count: Any, most: int = _MOST_PARTITIONS) -> int:
    """Return a whole number from 1 to `most`, also one of NumPy's, or raise."""
    if isinstance(count, bool) or not hasattr(count, "__index__") or not 1 <= index(count) <= most:
        expected = f"Give a whole number from 1 to {most}"
        raise ConfigurationError(option, f"found {in_short(count)}", expected)
    return index(count)


def _node_ids(replicas: Any) -> list[list[int]]:
    try:
        node_ids = [[index(broker) for broker in brokers] for brokers in replicas]
    except TypeError:
        node_ids = []
    if not node_ids or not all(node_ids):
        expected = "Give the node ids of each partition's brokers, as [[1, 2], [2, 3]]"
        raise ConfigurationError("replicas", f"found {in_short(replicas)}", expected)
    return node_ids


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
