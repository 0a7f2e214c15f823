"""One question about many partitions: each leader is asked until all partitions have an answer."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import (
    BrokerError,
    KafkaError,
    ProtocolError,
    error_named,
)
from spark_kafka_source.fetch.losses import patient
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.topic_partition import TopicPartition

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R", bound=Response)

_OVER_QUOTA = error_named("THROTTLING_QUOTA_EXCEEDED")

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
    """Send one request to each leader, and return the answer for each partition.

    `request` makes the request to one leader. `answers` yields partition, error code and answer
    from its response. Partitions whose leader has moved are asked for again, alone, for up to
    `timeout_ms` (default: `default.api.timeout.ms`). The wait for a silent leader ends when it does
    not lead any more. Raises `BrokerError` or `KafkaTimeoutError`, which name the partition. A
    topic must stay unknown for about two seconds before that is an error.

    `on_answer` gets the answers of each leader as soon as they are here.
    """
    found: dict[TopicPartition, A] = {}

    async def attempt(deadline: Deadline) -> dict[TopicPartition, A]:
        missing = {each: question for each, question in questions.items() if each not in found}
        leaders = await client.leaders(missing, deadline)
        requests = {
            leader: request(by_topic) for leader, by_topic in by_leader(missing, leaders).items()
        }

        async def is_still(leader: Broker) -> bool:
            asked = [each for each in missing if leaders[each][0] == leader]
            return await client.still_leads(leader, asked)

        failures: list[KafkaError] = []

        def take(_: Broker, answer: R) -> None:
            new: dict[TopicPartition, A] = {}
            failures.extend(_take(what, list(answers(answer)), new, answer))
            found.update(new)
            on_answer(new)

        asked = await client.send_to_each(
            requests, deadline, max_version=max_version, is_still=is_still, on_answer=take
        )
        failures += [each for each in asked.values() if isinstance(each, KafkaError)]
        if failures:
            # A lasting error comes first: the other partitions are not worth waiting for.
            raise min(failures, key=lambda failure: failure.has_remedy)
        return {each: _found(what, each, found) for each in questions}

    if not questions:
        return found
    return await client.retrying(what, patient(attempt), timeout_ms=timeout_ms)


def by_leader(
    questions: Mapping[TopicPartition, Q], leaders: Mapping[TopicPartition, tuple[Broker, int]]
) -> dict[Broker, ByTopic[Q]]:
    """Return the questions of each leader."""
    found: dict[Broker, dict[str, list[tuple[int, int, Q]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for where, question in questions.items():
        leader, leader_epoch = leaders[where]
        found[leader][where.topic].append((where.partition, leader_epoch, question))
    return dict(found)


def _take(
    what: str,
    answers: Sequence[tuple[TopicPartition, int, A]],
    found: dict[TopicPartition, A],
    answer: Response,
) -> list[KafkaError]:
    # A broker that throttles the client may send nothing but the time to wait (KIP-219).
    if not answers and getattr(answer, "throttle_time_ms", 0) > 0:
        return [BrokerError(_OVER_QUOTA, what)]
    failures: list[KafkaError] = []
    for where, code, one in answers:
        if code:
            failures.append(refusal(code, f"{what} of {where}", topic=where.topic))
        else:
            found[where] = one
    return failures


def _found(what: str, where: TopicPartition, found: Mapping[TopicPartition, A]) -> A:
    if where not in found:
        raise ProtocolError(f"{what} of {where}: the answer leaves it out")
    return found[where]
