"""The configurations of topics and brokers: shown (KIP-133), and changed one by one (KIP-339)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from spark_kafka_source.admin.changes import Verdict, ask_for_changes, may_heal
from spark_kafka_source.admin.new_topics import (
    ConfigValue,
    check_configs,
    check_mapping,
    check_name,
    config_text,
)
from spark_kafka_source.admin.questions import metadata
from spark_kafka_source.admin.refusals import (
    LOOK_MS,
    TOPIC_CONFIGS,
    misspelt,
    needed_right,
    no_topic,
    refused,
)
from spark_kafka_source.client import KafkaClient, configs
from spark_kafka_source.client.configs import (
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    Configs,
)
from spark_kafka_source.errors import (
    BrokerError,
    ConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    error_code,
    error_named,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from spark_kafka_source.secret import Secret

logger = logger_of(__name__)

__all__ = ["AlterConfigOp", "ConfigEntry", "ConfigResource"]

_ALTER = "IncrementalAlterConfigs"
_INVALID_CONFIG = error_named("INVALID_CONFIG")
_UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")
# Names such as `listener.name.internal.ssl.keystore.location`, of which a broker tells those set.
_OF_LISTENER = "listener.name."
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


@dataclass(frozen=True, slots=True)
class AlterConfigOp:
    """A change to a configuration that is a list: see `append` and `subtract`.

    To set a value, give the value. To take it away, so that the default counts, give None.
    """

    operation: int
    value: ConfigValue

    @classmethod
    def append(cls, value: ConfigValue) -> "AlterConfigOp":
        """Add members, such as `compact`, to a list such as `cleanup.policy`."""
        return cls(_APPEND, value)

    @classmethod
    def subtract(cls, value: ConfigValue) -> "AlterConfigOp":
        """Take members out of a list."""
        return cls(_SUBTRACT, value)


Change = ConfigValue | AlterConfigOp | None
Given = TypeVar("Given", bound=str | ConfigResource)
"""A resource as the user names it. A text is a topic."""


async def describe_configs(
    client: KafkaClient,
    resources: Given | Iterable[Given],
    names: str | Collection[str] | None = None,
    *,
    documentation: bool = False,
    timeout_ms: int | None = None,
) -> dict[Given, Configs]:
    """Return configurations by resource. See `KafkaAdmin.describe_configs`."""
    several = [resources] if isinstance(resources, str | ConfigResource) else resources
    given = {named: _resource("resources", named) for named in several}
    chosen = [names] if isinstance(names, str) else names
    if chosen is not None and not chosen:
        # Brokers would tell all.
        raise ConfigurationError("names", "has no name", "Give names, or leave it out for all")

    async def attempt(deadline: Deadline) -> dict[ConfigResource, Configs | BrokerError]:
        answers = await configs.describe_configs(
            client, given.values(), deadline, chosen, documentation=documentation
        )
        for answer in answers.values():
            if isinstance(answer, BrokerError) and may_heal(answer.error):
                raise answer
        return answers

    described = await client.retrying("DescribeConfigs", attempt, timeout_ms=timeout_ms)
    by_name: dict[Given, Configs] = {}
    for named, resource in given.items():
        answer = described[resource]
        if isinstance(answer, BrokerError):
            verdict = Verdict(resource, answer.error, answer.detail)
            raise await _failure(client, "DescribeConfigs", "DESCRIBE_CONFIGS", verdict)
        by_name[named] = answer
    return by_name


async def alter_configs(
    client: KafkaClient,
    changes: Mapping[Given, Mapping[str, Change]],
    *,
    validate_only: bool,
) -> dict[Given, KafkaError | None]:
    """Change configurations. See `KafkaAdmin.alter_configs`."""
    given = _checked(changes)
    edits = {
        given[named]: [_alterable(*change) for change in of_resource.items()]
        for named, of_resource in changes.items()
    }
    deadline = Deadline.after_ms(client.config.default_api_timeout_ms)
    look_by = deadline.within_ms(LOOK_MS)
    without_effect = await _without_effect(client, edits, look_by)
    for resource in without_effect:
        del edits[resource]
    by_key = {(resource.type.value, resource.name): resource for resource in edits}

    def request(asked: Sequence[ConfigResource], timeout_ms: int) -> IncrementalAlterConfigsRequest:
        altered = [
            AlterConfigsResource(resource.type.value, resource.name, edits[resource])
            for resource in asked
        ]
        return IncrementalAlterConfigsRequest(altered, validate_only)

    def verdicts(answer: IncrementalAlterConfigsResponse) -> Iterator[Verdict]:
        for response in answer.responses:
            resource = by_key.get((response.resource_type, response.resource_name))
            if resource is not None:
                yield Verdict(resource, error_code(response.error_code), response.error_message)

    await _warn_of_misspelt(client, edits, look_by.remaining_ms())
    try:
        outcomes = await ask_for_changes(
            client, _ALTER, edits, request, verdicts, deadline=deadline
        )
    except KafkaTimeoutError as error:
        if not without_effect:
            raise
        outcomes = dict.fromkeys(edits, error)
    return {
        named: without_effect[resource]
        if resource in without_effect
        else await _not_altered(client, changes[named], outcomes[resource])
        for named, resource in given.items()
    }


def _checked(changes: Any) -> dict[Any, ConfigResource]:
    check_mapping("changes", changes, "{'events': {'retention.ms': 86_400_000}}")
    for of_resource in changes.values():
        check_configs("changes", of_resource)
    given = {change: _resource("changes", change) for change in changes}
    if len(set(given.values())) < len(given):
        raise ConfigurationError("changes", "a resource is given twice", "Give each once")
    return given


def _resource(option: str, given: Any) -> ConfigResource:
    if isinstance(given, ConfigResource):
        return given
    check_name(option, given)
    return ConfigResource.topic(given)


def _alterable(name: str, change: Change) -> AlterableConfig:
    if change is None:
        return AlterableConfig(name, _DELETE, None)
    if isinstance(change, AlterConfigOp):
        return AlterableConfig(name, change.operation, config_text(name, change.value))
    return AlterableConfig(name, _SET, config_text(name, change))


# -- errors ----------------------------------------------------------------------------------------


async def _not_altered(
    client: KafkaClient, changes: Mapping[str, Change], outcome: Verdict | KafkaError
) -> KafkaError | None:
    if isinstance(outcome, KafkaError) or not outcome.error.code:
        return outcome if isinstance(outcome, KafkaError) else None
    values = (op.value if isinstance(op, AlterConfigOp) else op for op in changes.values())
    secrets = [op for op in values if isinstance(op, Secret)]
    return await _failure(
        client, _ALTER, "ALTER_CONFIGS", outcome, changed=changes, secrets=secrets
    )


async def _failure(
    client: KafkaClient,
    request: str,
    right: str,
    verdict: Verdict,
    *,
    changed: Iterable[str] = (),
    secrets: Iterable[Secret] = (),
) -> KafkaError:
    is_topic = verdict.resource.type is ConfigResourceType.TOPIC
    if verdict.error == _UNKNOWN and is_topic:
        return await no_topic(client, verdict.resource.name)
    advice = needed_right(verdict, right)
    if verdict.error.name in ("INVALID_CONFIG", "INVALID_REQUEST") and changed:
        advice = misspelt(changed, TOPIC_CONFIGS if is_topic else await _broker_configs(client))
    return refused(request, verdict, advice, secrets)


async def _without_effect(
    client: KafkaClient,
    edits: Mapping[ConfigResource, Sequence[AlterableConfig]],
    look_by: Deadline,
) -> dict[ConfigResource, KafkaError]:
    """Return why topics are not changed: a name to take away is none of theirs, nor of Kafka's.

    Brokers say that it is done; they refuse to set it. Kafka's own names are not looked up. A topic
    that cannot be described is left to the brokers.
    """
    errors: dict[ConfigResource, KafkaError] = {}
    for resource, changes in edits.items():
        away = {op.name for op in changes if op.config_operation == _DELETE} - TOPIC_CONFIGS
        if not away or resource.type is not ConfigResourceType.TOPIC:
            continue
        try:
            look_ms = look_by.remaining_ms()
            described = await describe_configs(client, [resource], timeout_ms=look_ms)
        except KafkaError as error:
            logger.debug("The configurations of %s are not known: %s", resource, error)
            continue
        present = described[resource].keys()
        unknown = sorted(away - present)
        if unknown:
            text = f"It has no {' and no '.join(map(repr, unknown))} to take away"
            advice = misspelt(unknown, TOPIC_CONFIGS | present)
            errors[resource] = refused(_ALTER, Verdict(resource, _INVALID_CONFIG, text), advice)
    return errors


async def _warn_of_misspelt(
    client: KafkaClient,
    edits: Mapping[ConfigResource, Sequence[AlterableConfig]],
    look_ms: int,
) -> None:
    """Warn of names like a broker's own. Brokers take all names: their plugins may have some."""
    names = {
        change.name
        for resource, changes in edits.items()
        if resource.type is ConfigResourceType.BROKER
        for change in changes
        if not change.name.startswith(_OF_LISTENER)
    }
    advice = misspelt(names, await _broker_configs(client, look_ms)) if names else None
    if advice:
        logger.warning("Brokers have no such configuration, and keep it without effect. %s", advice)


async def _broker_configs(client: KafkaClient, look_ms: int = LOOK_MS) -> Collection[str]:
    """Return the names of Kafka's configurations of brokers, if a broker tells them now."""
    try:
        await metadata(client, [], timeout_ms=look_ms)
        brokers = [ConfigResource.broker(broker) for broker in client.cluster.brokers][:1]
        described = await describe_configs(client, brokers, timeout_ms=look_ms)
    except KafkaError:
        return ()
    # A name of a user's own has no type: it may be the misspelt one of an earlier call.
    return [
        name
        for found in described.values()
        for name, entry in found.items()
        if entry.type != "UNKNOWN"
    ]
