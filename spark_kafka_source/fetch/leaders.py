"""Questions about partitions to their leaders, with the partitions of each topic together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from spark_kafka_source.client import LEADER, Broker, Cluster, KafkaClient, Told, ask_each
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.topic_partition import TopicPartition

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R", bound=Response)

ByTopic = Mapping[str, Iterable[tuple[int, int, Q]]]
"""Questions by topic: partition, known leader epoch, and the question."""


async def ask_leaders(
    client: KafkaClient,
    what: str,
    questions: Mapping[TopicPartition, Q],
    request: Callable[[ByTopic[Q]], Request[R]],
    answers: Callable[[R], Iterable[tuple[TopicPartition, int, A]]],
    *,
    max_version: int | None = None,
    timeout_ms: int | None = None,
    on_answer: Callable[[Mapping[TopicPartition, A]], None] = lambda _: None,
) -> dict[TopicPartition, A]:
    """Send one request to each leader, and return the answer for each partition; see `ask_each`.

    `request` makes the request to one leader. `answers` yields partition, error code and answer
    from its response. Each error of a partition is raised.
    """

    def of_leader(asked: Sequence[TopicPartition]) -> Request[R]:
        return request(by_topic(client.cluster, {each: questions[each] for each in asked}))

    def told(response: R, _: Broker) -> Iterable[Told[TopicPartition, A]]:
        return (Told(where, answer, code) for where, code, answer in answers(response))

    return await ask_each(
        client,
        what,
        LEADER,
        questions,
        request=of_leader,
        answers=told,
        max_version=max_version,
        timeout_ms=timeout_ms,
        on_answer=on_answer,
    )


def by_topic(cluster: Cluster, questions: Mapping[TopicPartition, Q]) -> ByTopic[Q]:
    """Return the questions to one leader, with the leader epochs that are known."""
    found: dict[str, list[tuple[int, int, Q]]] = defaultdict(list)
    for where, question in questions.items():
        _, leader_epoch = cluster.leader(where)
        found[where.topic].append((where.partition, leader_epoch, question))
    return dict(found)
