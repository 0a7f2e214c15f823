"""Questions about partitions to their leaders, with the partitions of each topic together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from spark_kafka_source.client import LEADER, Broker, KafkaClient, Told, ask_each
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.topic_partition import TopicPartition

Q = TypeVar("Q")
P = TypeVar("P")
A = TypeVar("A")
R = TypeVar("R", bound=Response)

ByTopic = Mapping[str, list[P]]
"""The partitions of a request by topic, as the request has them."""


async def ask_leaders(
    client: KafkaClient,
    what: str,
    questions: Mapping[TopicPartition, Q],
    *,
    partition: Callable[[int, int, Q], P],
    request: Callable[[ByTopic[P]], Request[R]],
    answers: Callable[[R, Broker], Iterable[Told[TopicPartition, A]]],
    timeout_ms: int | None = None,
    on_answer: Callable[[Mapping[TopicPartition, A]], None] = lambda _: None,
) -> dict[TopicPartition, A]:
    """Send one request to each leader, and return the answer for each partition; see `ask_each`.

    `partition` makes the part of a request about one partition, of its number, its known leader
    epoch and the question. `request` makes the request to one leader. Each error of a partition is
    raised.
    """

    def of_leader(asked: Sequence[TopicPartition]) -> Request[R]:
        by_topic: dict[str, list[P]] = defaultdict(list)
        for where in asked:
            _, leader_epoch = client.cluster.leader(where)
            asks = partition(where.partition, leader_epoch, questions[where])
            by_topic[where.topic].append(asks)
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
