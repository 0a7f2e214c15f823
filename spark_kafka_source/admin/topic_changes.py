"""Creation, deletion and growth of topics (KIP-4, KIP-195), each until all brokers know of it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from spark_kafka_source.admin.changes import Verdict, ask_for_changes
from spark_kafka_source.admin.errors import TopicExistsError
from spark_kafka_source.admin.new_topics import (
    NewTopic,
    check_mapping,
    check_name,
    config_texts,
    new_topics,
    topic_names,
    whole_count,
)
from spark_kafka_source.admin.questions import metadata
from spark_kafka_source.admin.readiness import why_not_gone, why_not_served
from spark_kafka_source.admin.refusals import (
    about_creation,
    needed_right,
    no_topic,
    partition_count,
    refused,
)
from spark_kafka_source.client import KafkaClient, Topic
from spark_kafka_source.client.configs import ConfigResource
from spark_kafka_source.errors import ConfigurationError, KafkaError, error_code, error_named
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.admin import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    DeletableTopicResult,
    DeleteTopicsRequest,
)
from spark_kafka_source.secret import Secret

R = TypeVar("R", bound=Response)

_Result = CreatableTopicResult | DeletableTopicResult | CreatePartitionsTopicResult

Outcomes = dict[str, KafkaError | None]
"""The error of each topic, or None for a topic where the change is done."""

_EXISTS = error_named("TOPIC_ALREADY_EXISTS")
_UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_NO_GROWTH = error_named("INVALID_PARTITIONS")
_NO_DELETION = error_named("TOPIC_DELETION_DISABLED")
_BROKERS_CHOOSE = -1
# DeleteTopics takes names up to v5. From v6 on it takes names or ids, in another field.
_DELETE_BY_NAME = 5


async def create_topics(
    client: KafkaClient, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> Outcomes:
    """Create topics, and wait until they can be used. See `KafkaAdmin.create_topics`."""
    given = new_topics(topics)
    by_name = {topic.name: topic for topic in given}
    if len(by_name) < len(given):
        raise ConfigurationError("topics", "a topic is given twice", "Give each topic once")
    deadline = Deadline.after_ms(client.config.default_api_timeout_ms)

    def request(names: Sequence[str], timeout_ms: int) -> CreateTopicsRequest:
        creatable = [_creatable(by_name[name]) for name in names]
        return CreateTopicsRequest(creatable, timeout_ms, validate_only)

    outcomes, done = await _changed(
        client,
        "CreateTopics",
        by_name,
        request=request,
        results=lambda answer: answer.topics,
        refusal=lambda name, verdict: _not_created(client, by_name[name], verdict),
        deadline=deadline,
    )
    if not validate_only:
        new = {name: range(max(verdict.partitions, 0)) for name, verdict in done.items()}
        outcomes |= await why_not_served(client, new, "created", deadline)
    return outcomes


async def delete_topics(client: KafkaClient, names: Iterable[str]) -> Outcomes:
    """Delete topics, and wait until they are gone. See `KafkaAdmin.delete_topics`."""
    chosen = topic_names("names", names)
    deadline = Deadline.after_ms(client.config.default_api_timeout_ms)
    present = await _present(client, chosen, deadline)

    outcomes, done = await _changed(
        client,
        "DeleteTopics",
        chosen,
        request=lambda names, ms: DeleteTopicsRequest(topic_names=names, timeout_ms=ms),
        results=lambda answer: answer.responses,
        refusal=partial(_not_deleted, client),
        deadline=deadline,
        max_version=_DELETE_BY_NAME,
    )
    gone = {name: present[name].topic_id for name in done if name in present}
    return outcomes | await why_not_gone(client, gone, deadline)


async def create_partitions(
    client: KafkaClient, totals: Mapping[str, int], *, validate_only: bool = False
) -> Outcomes:
    """Add partitions, and wait until they can be used. See `KafkaAdmin.create_partitions`."""
    check_mapping("totals", totals, "{'events': 12}")
    for name in totals:
        check_name("totals", name)
    totals = {name: whole_count("partitions", count) for name, count in totals.items()}
    deadline = Deadline.after_ms(client.config.default_api_timeout_ms)
    present = await _present(client, totals, deadline)

    def request(names: Sequence[str], timeout_ms: int) -> CreatePartitionsRequest:
        grown = [CreatePartitionsTopic(name, totals[name], None) for name in names]
        return CreatePartitionsRequest(grown, timeout_ms, validate_only)

    outcomes, done = await _changed(
        client,
        "CreatePartitions",
        totals,
        request=request,
        results=lambda answer: answer.results,
        refusal=lambda name, verdict: _not_grown(client, name, totals[name], verdict),
        deadline=deadline,
    )
    if not validate_only:
        # An old partition may be without a leader for long.
        old = {name: len(topic.partitions) for name, topic in present.items()}
        new = {name: range(old.get(name, 0), totals[name]) for name in done}
        outcomes |= await why_not_served(client, new, "grown", deadline)
    return outcomes


async def _present(
    client: KafkaClient, names: Collection[str], deadline: Deadline
) -> dict[str, Topic]:
    """Return the topics that exist and that this user may see."""
    topics = await metadata(client, names, timeout_ms=deadline.remaining_ms()) if names else []
    return {topic.name: topic for topic in topics if not topic.error.code}


# -- requests and answers --------------------------------------------------------------------------


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions or _BROKERS_CHOOSE,
        replication_factor=topic.replication_factor or _BROKERS_CHOOSE,
        assignments=[
            CreatableReplicaAssignment(number, list(brokers))
            for number, brokers in enumerate(topic.replicas or ())
        ],
        configs=[
            CreatableTopicConfig(name, text) for name, text in config_texts(topic.configs).items()
        ],
    )


def _verdict(result: _Result) -> Verdict:
    count = result.num_partitions if isinstance(result, CreatableTopicResult) else -1
    topic = ConfigResource.topic(result.name or "")
    return Verdict(topic, error_code(result.error_code), result.error_message, count)


async def _changed(
    client: KafkaClient,
    what: str,
    names: Iterable[str],
    *,
    request: Callable[[list[str], int], Request[R]],
    results: Callable[[R], Iterable[_Result]],
    refusal: Callable[[str, Verdict], Conversation[KafkaError | None]],
    deadline: Deadline,
    max_version: int | None = None,
) -> tuple[Outcomes, dict[str, Verdict]]:
    """Ask for a change of topics; see `ask_for_changes`. Wait for no effect.

    Returns the outcome for each topic, and the verdicts on topics where the change is done.
    `refusal` returns the error of a verdict that is no success, or None if it is one after all.
    """
    verdicts = await ask_for_changes(
        client,
        what,
        map(ConfigResource.topic, names),
        lambda topics, timeout_ms: request([topic.name for topic in topics], timeout_ms),
        lambda answer: map(_verdict, results(answer)),
        deadline=deadline,
        max_version=max_version,
    )
    outcomes: Outcomes = {}
    done: dict[str, Verdict] = {}
    for topic, verdict in verdicts.items():
        name = topic.name
        if isinstance(verdict, KafkaError):
            outcomes[name] = verdict
            continue
        outcomes[name] = await refusal(name, verdict) if verdict.error.code else None
        if outcomes[name] is None:
            done[name] = verdict
    return outcomes, done


# -- errors ----------------------------------------------------------------------------------------


async def _not_created(client: KafkaClient, topic: NewTopic, verdict: Verdict) -> KafkaError:
    if verdict.error == _EXISTS:
        lost = "An earlier try of this call may have created it: its answer was lost"
        return TopicExistsError(topic.name, lost if verdict.may_be_done else None)
    secrets = [value for value in topic.configs.values() if isinstance(value, Secret)]
    return refused("CreateTopics", verdict, await about_creation(client, topic, verdict), secrets)


async def _not_deleted(client: KafkaClient, name: str, verdict: Verdict) -> KafkaError | None:
    if verdict.error == _UNKNOWN:
        return None if verdict.may_be_done else await no_topic(client, name)
    advice = needed_right(verdict, "DELETE")
    if verdict.error == _NO_DELETION:
        advice = "The brokers' 'delete.topic.enable' is false: no topic can be deleted"
    return refused("DeleteTopics", verdict, advice)


async def _not_grown(
    client: KafkaClient, name: str, total: int, verdict: Verdict
) -> KafkaError | None:
    if verdict.error == _UNKNOWN:
        return await no_topic(client, name)
    advice = needed_right(verdict, "ALTER")
    if verdict.error == _NO_GROWTH:
        present = await partition_count(client, name)
        if verdict.may_be_done and present == total:
            return None
        has = f"it has {present}, so give more" if present else "give more than it has"
        advice = f"Partitions can only be added: {has}"
    return refused("CreatePartitions", verdict, advice)
