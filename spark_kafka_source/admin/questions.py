"""Questions about groups to their coordinators, and questions to all brokers."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from spark_kafka_source.admin.errors import typed
from spark_kafka_source.client import (
    COORDINATOR,
    Broker,
    CoordinatorKey,
    KafkaClient,
    Told,
    Topic,
    ask_each,
)
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import BrokerError, KafkaError
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.group_admin import ListGroupsResponse
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsResponse

A = TypeVar("A")
R = TypeVar("R", bound=Response)
L = TypeVar("L", ListGroupsResponse, ListTransactionsResponse)


async def ask_groups(
    client: KafkaClient,
    what: str,
    group_ids: Iterable[str],
    request: Callable[[list[str]], Request[R]],
    answers: Callable[[R, Broker], Iterable[Told[CoordinatorKey, A]]],
    *,
    wish: str = "it can be read",
    max_version: int | None = None,
) -> dict[str, A | KafkaError]:
    """Ask the coordinators of groups; see `ask_each`. Return the answer or the error of each group.

    The error is a `GroupNotFoundError`, or a `GroupNotEmptyError` with the `wish` that needs an
    empty group, or the broker's own. Raises `KafkaTimeoutError`, and `UnsupportedVersionError` if a
    broker does not have the API, or none of its versions up to `max_version`.
    """
    by_key: dict[CoordinatorKey, A | BrokerError] = await ask_each(
        client,
        what,
        COORDINATOR,
        map(CoordinatorKey.of_group, group_ids),
        request=lambda keys: request([group.key for group in keys]),
        answers=answers,
        max_version=max_version,
        instead=lambda error: error,
    )
    return {
        group.key: typed(answer, group.key, wish) if isinstance(answer, BrokerError) else answer
        for group, answer in by_key.items()
    }


async def ask_all_brokers(
    client: KafkaClient, what: str, request: Request[L], deadline: Deadline
) -> dict[Broker, L | KafkaError]:
    """Ask all brokers of the cluster once. Return each one's answer, or its error."""
    await client.topics([], deadline)
    requests = dict.fromkeys(client.cluster.brokers.values(), request)
    answers = await client.send_to_each(requests, deadline)
    return {
        broker: refusal(answer.error_code, f"{what} of broker {broker.node_id}")
        if not isinstance(answer, KafkaError) and answer.error_code
        else answer
        for broker, answer in answers.items()
    }


async def metadata(
    client: KafkaClient, names: Iterable[str] | None, *, timeout_ms: int | None = None
) -> list[Topic]:
    """Return these topics (None: all), each perhaps with an error, as a broker knows them now."""
    topics = None if names is None else list(names)
    return await client.retrying(
        "Metadata", lambda deadline: client.topics(topics, deadline), timeout_ms=timeout_ms
    )
