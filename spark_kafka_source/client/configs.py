"""The configurations of topics and brokers, as brokers tell them (DescribeConfigs, KIP-133)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from spark_kafka_source.client.client import KafkaClient
from spark_kafka_source.client.cluster import Broker
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import BrokerError, ConfigurationError, KafkaError, ProtocolError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)

logger = logger_of(__name__)

_TIMESTAMP_TYPE, _BY_BROKER = "message.timestamp.type", "LogAppendTime"


class ConfigResourceType(Enum):
    """The kinds of things that have configurations. The value is Kafka's number."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A thing that has configurations, in the terms of Kafka's `ConfigResource`."""

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        """Return the resource of a topic."""
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int) -> "ConfigResource":
        """Return the resource of one broker, by its node id."""
        return cls(ConfigResourceType.BROKER, str(node_id))

    @classmethod
    def all_brokers(cls) -> "ConfigResource":
        """Return the resource of the values for all brokers that have none of their own."""
        return cls(ConfigResourceType.BROKER, "")

    @classmethod
    def broker_loggers(cls, node_id: int) -> "ConfigResource":
        """Return the resource of the levels of a broker's loggers (KIP-412)."""
        return cls(ConfigResourceType.BROKER_LOGGER, str(node_id))

    @property
    def node_id(self) -> int | None:
        """The broker that requests about it must go to; None for any broker."""
        is_topic = self.type is ConfigResourceType.TOPIC
        return None if is_topic or not self.name.isdecimal() else int(self.name)

    def __str__(self) -> str:
        if self.type is ConfigResourceType.TOPIC:
            return f"topic {self.name!r}"
        if not self.name:
            return "all brokers"
        return f"{self.type.name.lower().replace('_', ' ')} {self.name}"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One configuration of a topic or a broker.

    `value` is the text that counts, and None if the broker hides it, as it does with those that are
    `is_sensitive`. `source` and `type` are Kafka's names: where the value comes from
    (`DYNAMIC_TOPIC_CONFIG`, `DYNAMIC_BROKER_CONFIG`, `DYNAMIC_DEFAULT_BROKER_CONFIG`,
    `STATIC_BROKER_CONFIG`, `DEFAULT_CONFIG`, ...), and what it is (`LONG`, `LIST`, ...; `UNKNOWN`
    from brokers before Kafka 2.6). `documentation` is None unless asked for.
    """

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool
    type: str
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether the value is Kafka's own: neither the resource nor a broker sets it."""
        return self.source == "DEFAULT_CONFIG"


Configs = dict[str, ConfigEntry]
"""The configurations of one resource, by name."""

_SOURCES = (
    *("UNKNOWN", "DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    *("STATIC_BROKER_CONFIG", "DEFAULT_CONFIG", "DYNAMIC_BROKER_LOGGER_CONFIG"),
    *("CLIENT_METRICS_CONFIG", "GROUP_CONFIG"),
)
_TYPES = (
    *("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS"),
    "PASSWORD",
)


async def describe_configs(
    client: KafkaClient,
    resources: Iterable[ConfigResource],
    deadline: Deadline,
    names: Collection[str] | None = None,
    *,
    documentation: bool = False,
) -> dict[ConfigResource, Configs | BrokerError]:
    """Ask once for these configurations (None: all). Return them or an error by resource.

    Raises `ConfigurationError` for a broker that is not up, and what a request raises.
    """
    named = None if names is None else list(names)
    configs: dict[ConfigResource, Configs | BrokerError] = {}
    for broker, led in (await by_broker(client, resources, deadline)).items():
        described = [DescribeConfigsResource(each.type.value, each.name, named) for each in led]
        request = DescribeConfigsRequest(described, False, documentation)
        answer = (
            await client.send_to_any(request, deadline)
            if broker is None
            else await client.send(request, broker, deadline)
        )
        answers = {(each.resource_type, each.resource_name): each for each in answer.results}
        for each in led:
            result = answers.get((each.type.value, each.name))
            if result is None:
                raise ProtocolError(f"DescribeConfigs of {each}: the answer leaves it out")
            configs[each] = _configs(each, result)
    return configs


async def by_broker(
    client: KafkaClient, resources: Iterable[ConfigResource], deadline: Deadline
) -> dict[Broker | None, list[ConfigResource]]:
    """Return the resources by the broker that requests about them must go to; None: any broker.

    Raises `ConfigurationError` for a broker that is not up.
    """
    by_broker: dict[Broker | None, list[ConfigResource]] = {}
    for each in dict.fromkeys(resources):
        broker = None if each.node_id is None else await _broker(client, each.node_id, deadline)
        by_broker.setdefault(broker, []).append(each)
    return by_broker


async def numbers_set_at(
    client: KafkaClient, broker: Broker, names: Collection[str], deadline: Deadline
) -> dict[str, int]:
    """Return the configurations of a broker that are whole numbers, by name.

    One that the broker does not tell is left out, as all are if the user lacks DESCRIBE_CONFIGS on
    the cluster. Raises what `KafkaClient.send` raises.
    """
    resource = ConfigResource.broker(broker.node_id)
    configs = (await describe_configs(client, [resource], deadline, names))[resource]
    if isinstance(configs, KafkaError):
        return {}
    values = {name: entry.value for name, entry in configs.items() if name in names}
    return {name: int(text) for name, text in values.items() if text and text.isdecimal()}


async def log_append_topics(client: KafkaClient, names: Iterable[str]) -> set[str]:
    """Return the topics whose brokers set the times of records (LogAppendTime).

    A topic of which the user may not ask this is not among them: CreateTime is the default. It
    needs DESCRIBE_CONFIGS on the topic.
    """
    topics = [ConfigResource.topic(name) for name in names]
    try:
        described = await client.retrying(
            "DescribeConfigs",
            lambda deadline: describe_configs(client, topics, deadline, [_TIMESTAMP_TYPE]),
        )
    except KafkaError as error:
        logger.debug("The topics' %s is not known: %s", _TIMESTAMP_TYPE, error)
        return set()
    return {
        topic.name
        for topic, configs in described.items()
        if not isinstance(configs, KafkaError)
        and _TIMESTAMP_TYPE in configs
        and configs[_TIMESTAMP_TYPE].value == _BY_BROKER
    }


async def _broker(client: KafkaClient, node_id: int, deadline: Deadline) -> Broker:
    if node_id not in client.cluster.brokers:
        await client.topics([], deadline)
    broker = client.cluster.brokers.get(node_id)
    if broker is None:
        known = ", ".join(map(str, sorted(client.cluster.brokers)))
        raise ConfigurationError(
            "resources", "no broker {} is up", f"There are these: {known}", node_id
        )
    return broker


def _configs(resource: ConfigResource, result: DescribeConfigsResult) -> Configs | BrokerError:
    if result.error_code:
        return refusal(result.error_code, f"DescribeConfigs of {resource}", result.error_message)
    return {entry.name: _entry(entry) for entry in result.configs}


def _entry(entry: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        entry.name,
        None if entry.is_sensitive else entry.value,
        _named(_SOURCES, entry.config_source),
        entry.read_only,
        entry.is_sensitive,
        _named(_TYPES, entry.config_type),
        entry.documentation,
    )


def _named(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else names[0]
