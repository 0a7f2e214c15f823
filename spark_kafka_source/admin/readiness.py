"""The wait after a change of topics, until all brokers act on it.

The controller answers once it has written a change down. The brokers hear of it later, each at its
own time. Until then a leader refuses records: NOT_LEADER_OR_FOLLOWER.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from uuid import UUID

from spark_kafka_source.client import LONGEST_SILENCE_MS, KafkaClient
from spark_kafka_source.errors import (
    BrokerError,
    KafkaError,
    KafkaTimeoutError,
    RemoteError,
    error_code,
    error_named,
)
from spark_kafka_source.fetch import LATEST_TIMESTAMP
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp, offsets_for_times
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversation, Deadline
from spark_kafka_source.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from spark_kafka_source.topic_partition import TopicPartition

logger = logger_of(__name__)

_UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")
_DENIED = error_named("TOPIC_AUTHORIZATION_FAILED")
_NOT_YET = error_named("REQUEST_TIMED_OUT")


async def why_not_served(
    client: KafkaClient, numbers: Mapping[str, range], change: str, deadline: Deadline
) -> dict[str, KafkaError]:
    """Wait until all brokers know these partitions, and their leaders serve them.

    The empty range from 0 on stands for all that a broker names. Returns the reason for each topic
    that is not served by the deadline. A topic that this user may not see is not waited for.
    """
    left = dict(numbers)
    serving: dict[TopicPartition, OffsetAndTimestamp] = {}

    async def attempt(within: Deadline) -> None:
        for topic in await client.topics(list(left), within):
            if topic.error == _DENIED:
                logger.debug("%r may not be seen by its creator: it is not waited for", topic.name)
                del left[topic.name]
            else:
                left[topic.name] = left[topic.name] or range(len(topic.partitions))
        partitions = [TopicPartition(name, number) for name in left for number in left[name] or [0]]
        for where in partitions:
            client.cluster.leader(where)  # Raises `BrokerError` if there is none (yet).
        for answer in await _of_each_broker(client, left, within):
            _check_knows(answer, left)
        # A broker names itself the leader before it serves a partition. A producer that writes in
        # between may have its second batch stored and its first refused: Kafka's own sends the
        # first again until delivery.timeout.ms (KAFKA-14359).
        asked = {where: LATEST_TIMESTAMP for where in partitions if where not in serving}
        await offsets_for_times(
            client, asked, timeout_ms=within.remaining_ms(), on_answer=serving.update
        )
        left.clear()

    def is_served(name: str) -> bool:
        served = {partition.partition for partition in serving if partition.topic == name}
        return bool(left[name]) and served.issuperset(left[name])

    why = f"{change}, but brokers do not serve it"
    errors = await _why_not(client, "leaders of topics", attempt, left, deadline, why=why)
    return {name: error for name, error in errors.items() if not is_served(name)}


async def why_not_gone(
    client: KafkaClient, ids: Mapping[str, UUID], deadline: Deadline
) -> dict[str, KafkaError]:
    """Wait until no broker knows these topics, by their ids.

    Returns the reason for each topic that a broker still knows at the deadline.
    """
    left = dict(ids)

    async def attempt(within: Deadline) -> None:
        await client.topics(list(left), within)
        answers = await _of_each_broker(client, left, within)
        known = {
            topic.name
            for answer in answers
            for topic in answer.topics
            if not topic.error_code and topic.name in left and topic.topic_id == ids[topic.name]
        }
        for name in left.keys() - known:
            del left[name]
        if left:
            raise BrokerError(_NOT_YET, "Metadata", "a broker still knows it")

    why = "deleted, but not gone"
    return await _why_not(client, "end of topics", attempt, left, deadline, why=why)


async def _why_not(
    client: KafkaClient,
    what: str,
    attempt: Callable[[Deadline], Conversation[None]],
    left: Collection[str],
    deadline: Deadline,
    *,
    why: str,
) -> dict[str, KafkaError]:
    """Try until nothing is left. Return the error of each topic that is left at the deadline."""
    try:
        if left:
            await client.retrying(what, attempt, timeout_ms=deadline.remaining_ms())
    except RemoteError as error:
        text = f"{why} within {deadline.timeout_ms} ms: {error}"
        return {name: KafkaTimeoutError(f"Topic {name!r} is {text}") for name in left}
    return {}


async def _of_each_broker(
    client: KafkaClient, names: Iterable[str], deadline: Deadline
) -> list[MetadataResponse]:
    """Ask all brokers for these topics. Return the answers that come within 2 s.

    Raises the error of a broker that had no time to answer.
    """
    topics = [MetadataRequestTopic(name=name) for name in names]
    if not topics:
        return []
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    requests = dict.fromkeys(client.cluster.brokers.values(), request)
    answers = await client.send_to_each(requests, deadline.within_ms(LONGEST_SILENCE_MS))
    for answer in answers.values():
        if isinstance(answer, KafkaError) and deadline.expired:
            raise answer
    return [answer for answer in answers.values() if not isinstance(answer, KafkaError)]


def _check_knows(answer: MetadataResponse, partitions: Mapping[str, range]) -> None:
    for topic in answer.topics:
        known = {partition.partition_index for partition in topic.partitions}
        if topic.error_code or not known.issuperset(partitions.get(topic.name or "", ())):
            error = error_code(topic.error_code) if topic.error_code else _UNKNOWN
            raise BrokerError(error, f"Metadata of {topic.name}", "a broker does not know all yet")
