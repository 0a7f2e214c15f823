"""Creation, deletion and growth of topics (KIP-4, KIP-195), each until all brokers know of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from spark_kafka_source.admin.controller import Verdict, ask_controller
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
from spark_kafka_source.admin.readiness import present, why_not_gone, why_not_served
from spark_kafka_source.admin.refusals import (
    about_creation,
    needed_right,
    partition_count,
    refused,
    similar_topic,
)
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import (
    ConfigurationError,
    KafkaError,
    TopicNotFoundError,
    error_code,
    error_named,
)
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.protocol.messages.admin import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
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

    def request(names: list[str], timeout_ms: int) -> CreateTopicsRequest:
        creatable = [_creatable(wanted[each]) for each in names]
        return CreateTopicsRequest(creatable, timeout_ms, validate_only)

    found = await ask_controller(
        client, "CreateTopics", list(wanted), request, _created, deadline=deadline
    )
    outcomes, done = await _settled(
        found, lambda each: _not_created(client, wanted[each.topic], each)
    )
    if not validate_only:
        new = {name: range(max(each.partitions, 0)) for name, each in done.items()}
        outcomes |= await why_not_served(client, new, "created", deadline)
    return outcomes


async def delete_topics(client: KafkaClient, names: Iterable[str]) -> Outcomes:
    """Delete topics, and wait until they are gone. See `KafkaAdmin.delete_topics`."""
    wanted = topic_names("names", names)
    deadline = Deadline.after_ms(client.config.default_api_timeout_ms)
    there = await present(client, wanted, deadline)
    ids = {name: each.topic_id for name, each in there.items()}

    def request(topics: list[str], timeout_ms: int) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topic_names=topics, timeout_ms=timeout_ms)

    found = await ask_controller(
        client,
        "DeleteTopics",
        wanted,
        request,
        _deleted,
        deadline=deadline,
        max_version=_DELETE_BY_NAME,
    )
    outcomes, done = await _settled(found, partial(_not_deleted, client))
    gone = {name: ids[name] for name in done if name in ids}
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
    there = await present(client, totals, deadline)
    old = {name: len(each.partitions) for name, each in there.items()}

    def request(names: list[str], timeout_ms: int) -> CreatePartitionsRequest:
        grown = [CreatePartitionsTopic(each, totals[each], None) for each in names]
        return CreatePartitionsRequest(grown, timeout_ms, validate_only)

    found = await ask_controller(
        client, "CreatePartitions", list(totals), request, _grown, deadline=deadline
    )
    outcomes, done = await _settled(
        found, lambda each: _not_grown(client, totals[each.topic], each)
    )
    if not validate_only:
        # An old partition may be without a leader for long.
        new = {name: range(old.get(name, 0), totals[name]) for name in done}
        outcomes |= await why_not_served(client, new, "grown", deadline)
    return outcomes


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


def _created(answer: CreateTopicsResponse) -> Iterator[Verdict]:
    for each in answer.topics:
        error = error_code(each.error_code)
        yield Verdict(each.name, error, each.error_message, each.num_partitions)


def _deleted(answer: DeleteTopicsResponse) -> Iterator[Verdict]:
    for each in answer.responses:
        yield Verdict(each.name or "", error_code(each.error_code), each.error_message)


def _grown(answer: CreatePartitionsResponse) -> Iterator[Verdict]:
    for each in answer.results:
        yield Verdict(each.name, error_code(each.error_code), each.error_message)


# -- errors ----------------------------------------------------------------------------------------


async def _settled(
    found: Mapping[str, Verdict | KafkaError],
    refusal: Callable[[Verdict], Conversation[KafkaError | None]],
) -> tuple[Outcomes, dict[str, Verdict]]:
    """Return the outcome for each topic, and the verdicts on topics where the change is done."""
    outcomes = {
        name: await refusal(each) if isinstance(each, Verdict) else each
        for name, each in found.items()
    }
    done = {
        name: each
        for name, each in found.items()
        if isinstance(each, Verdict) and outcomes[name] is None
    }
    return outcomes, done


async def _not_created(client: KafkaClient, topic: NewTopic, found: Verdict) -> KafkaError | None:
    if not found.error.code:
        return None
    if found.error == _EXISTS:
        lost = "An earlier try of this call may have created it: its answer was lost"
        return TopicExistsError(topic.name, lost if found.may_be_done else None)
    advice = await about_creation(client, topic, found.error)
    secrets = [each for each in topic.configs.values() if isinstance(each, Secret)]
    return refused(f"CreateTopics {topic.name!r}", found.error, found.said, advice, secrets)


async def _not_deleted(client: KafkaClient, found: Verdict) -> KafkaError | None:
    if not found.error.code or (found.error == _UNKNOWN and found.may_be_done):
        return None
    if found.error == _UNKNOWN:
        return TopicNotFoundError(found.topic, await similar_topic(client, found.topic))
    advice = needed_right(found.error, "DELETE", f"topic {found.topic!r}")
    if found.error == _NO_DELETION:
        advice = "The brokers' 'delete.topic.enable' is false: no topic can be deleted"
    return refused(f"DeleteTopics {found.topic!r}", found.error, found.said, advice)


async def _not_grown(client: KafkaClient, total: int, found: Verdict) -> KafkaError | None:
    if not found.error.code:
        return None
    if found.error == _UNKNOWN:
        return TopicNotFoundError(found.topic, await similar_topic(client, found.topic))
    advice = needed_right(found.error, "ALTER", f"topic {found.topic!r}")
    if found.error == _NO_GROWTH:
        present = await partition_count(client, found.topic)
        if found.may_be_done and present == total:
            return None
        has = f"it has {present}, so give more" if present else "give more than it has"
        advice = f"Partitions can only be added: {has}"
    return refused(f"CreatePartitions {found.topic!r}", found.error, found.said, advice)
