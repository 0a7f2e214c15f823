"""Creation, deletion and growth of topics (KIP-4, KIP-195), each until all brokers know of it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

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
from spark_kafka_source.errors import (
    ConfigurationError,
    KafkaError,
    error_code,
    error_named,
)
from spark_kafka_source.net import Conversation, Deadline
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
    wanted = {each.name: each for each in given}
    if len(wanted) < len(given):
        raise ConfigurationError("topics", "a topic is given twice", "Give each topic once")
    deadline = Deadline.after_ms(client.config.default_api_timeout_ms)

    def request(mine: Sequence[ConfigResource], timeout_ms: int) -> CreateTopicsRequest:
        creatable = [_creatable(wanted[each.name]) for each in mine]
        return CreateTopicsRequest(creatable, timeout_ms, validate_only)

    found = await ask_for_changes(
        client,
        "CreateTopics",
        map(ConfigResource.topic, wanted),
        request,
        lambda answer: map(_verdict, answer.topics),
        deadline=deadline,
    )
    outcomes, done = await _settled(
        found, lambda each: _not_created(client, wanted[each.resource.name], each)
    )
    if not validate_only:
        new = {name: range(max(each.partitions, 0)) for name, each in done.items()}
        outcomes |= await why_not_served(client, new, "created", deadline)
    return outcomes


async def delete_topics(client: KafkaClient, names: Iterable[str]) -> Outcomes:
    """Delete topics, and wait until they are gone. See `KafkaAdmin.delete_topics`."""
    wanted = topic_names("names", names)
    deadline = Deadline.after_ms(client.config.default_api_timeout_ms)
    there = await _present(client, wanted, deadline)

    def request(mine: Sequence[ConfigResource], timeout_ms: int) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topic_names=[each.name for each in mine], timeout_ms=timeout_ms)

    found = await ask_for_changes(
        client,
        "DeleteTopics",
        map(ConfigResource.topic, wanted),
        request,
        lambda answer: map(_verdict, answer.responses),
        deadline=deadline,
        max_version=_DELETE_BY_NAME,
    )
    outcomes, done = await _settled(found, partial(_not_deleted, client))
    gone = {name: there[name].topic_id for name in done if name in there}
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
    there = await _present(client, totals, deadline)

    def request(mine: Sequence[ConfigResource], timeout_ms: int) -> CreatePartitionsRequest:
        grown = [CreatePartitionsTopic(each.name, totals[each.name], None) for each in mine]
        return CreatePartitionsRequest(grown, timeout_ms, validate_only)

    found = await ask_for_changes(
        client,
        "CreatePartitions",
        map(ConfigResource.topic, totals),
        request,
        lambda answer: map(_verdict, answer.results),
        deadline=deadline,
    )
    outcomes, done = await _settled(
        found, lambda each: _not_grown(client, totals[each.resource.name], each)
    )
    if not validate_only:
        # An old partition may be without a leader for long.
        old = {name: len(each.partitions) for name, each in there.items()}
        new = {name: range(old.get(name, 0), totals[name]) for name in done}
        outcomes |= await why_not_served(client, new, "grown", deadline)
    return outcomes


async def _present(
    client: KafkaClient, names: Collection[str], deadline: Deadline
) -> dict[str, Topic]:
    """Return those topics that exist, and that this user may see."""
    found = await metadata(client, names, timeout_ms=deadline.remaining_ms()) if names else []
    return {each.name: each for each in found if not each.error.code}


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


def _verdict(
    found: CreatableTopicResult | DeletableTopicResult | CreatePartitionsTopicResult,
) -> Verdict:
    verdict = Verdict(
        ConfigResource.topic(found.name or ""), error_code(found.error_code), found.error_message
    )
    if isinstance(found, CreatableTopicResult):
        return verdict._replace(partitions=found.num_partitions)
    return verdict


# -- errors ----------------------------------------------------------------------------------------


async def _settled(
    found: Mapping[ConfigResource, Verdict | KafkaError],
    refusal: Callable[[Verdict], Conversation[KafkaError | None]],
) -> tuple[Outcomes, dict[str, Verdict]]:
    """Return the outcome for each topic, and the verdicts on topics where the change is done.

    `refusal` returns the error of a verdict that is no success, or None if it is one after all.
    """
    outcomes: Outcomes = {}
    done: dict[str, Verdict] = {}
    for topic, each in found.items():
        error: KafkaError | None = None
        if isinstance(each, KafkaError):
            error = each
        elif each.error.code:
            error = await refusal(each)
        outcomes[topic.name] = error
        if error is None and isinstance(each, Verdict):
            done[topic.name] = each
    return outcomes, done


async def _not_created(client: KafkaClient, topic: NewTopic, found: Verdict) -> KafkaError:
    if found.error == _EXISTS:
        lost = "An earlier try of this call may have created it: its answer was lost"
        return TopicExistsError(topic.name, lost if found.may_be_done else None)
    advice = await about_creation(client, topic, found.error)
    secrets = [each for each in topic.configs.values() if isinstance(each, Secret)]
    return refused(f"CreateTopics of {found.resource}", found.error, found.said, advice, secrets)


async def _not_deleted(client: KafkaClient, found: Verdict) -> KafkaError | None:
    if found.error == _UNKNOWN:
        return None if found.may_be_done else await no_topic(client, found.resource.name)
    advice = needed_right(found.error, "DELETE", str(found.resource))
    if found.error == _NO_DELETION:
        advice = "The brokers' 'delete.topic.enable' is false: no topic can be deleted"
    return refused(f"DeleteTopics of {found.resource}", found.error, found.said, advice)


async def _not_grown(client: KafkaClient, total: int, found: Verdict) -> KafkaError | None:
    if found.error == _UNKNOWN:
        return await no_topic(client, found.resource.name)
    advice = needed_right(found.error, "ALTER", str(found.resource))
    if found.error == _NO_GROWTH:
        present = await partition_count(client, found.resource.name)
        if found.may_be_done and present == total:
            return None
        has = f"it has {present}, so give more" if present else "give more than it has"
        advice = f"Partitions can only be added: {has}"
    return refused(f"CreatePartitions of {found.resource}", found.error, found.said, advice)
