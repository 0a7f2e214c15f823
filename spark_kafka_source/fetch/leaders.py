"""Questions about partitions to their leaders, with the partitions of each topic together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from spark_kafka_source.client import LEADER, Broker, KafkaClient, Told, ask_each
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
    answers: Callable[[R, Broker], Iterable[Told[TopicPartition, A]]],
    *,
    timeout_ms: int | None = None,
    on_answer: Callable[[Mapping[TopicPartition, A]], None] = lambda _: None,
) -> dict[TopicPartition, A]:
    """Send one request to each leader, and return the answer for each partition; see `ask_each`.

    `request` makes the request to one leader. Each error of a partition is raised.
    """

    def of_leader(asked: Sequence[TopicPartition]) -> Request[R]:
        by_topic: dict[str, list[tuple[int, int, Q]]] = defaultdict(list)
        for where in asked:
            _, leader_epoch = client.cluster.leader(where)
            by_topic[where.topic].append((where.partition, leader_epoch, questions[where]))
        return request(by_topic)

    return await ask_each(
        client,
        what,
        LEADER,
        questions,
        request=of_leader,
        answers=answers,
        timeout_ms=timeout_ms,
        on_answer=on_answer,
    )
