"""One request about many topics, which only the controller of the cluster can answer.

Kafka 4 passes such a request on from any broker. Brokers with ZooKeeper refuse it: NOT_CONTROLLER.
Metadata then names the controller. In Kafka 4 it names any broker.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    RemoteError,
    error_named,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.metadata import MetadataRequest

R = TypeVar("R", bound=Response)

_NOT_CONTROLLER = error_named("NOT_CONTROLLER")
_TIMED_OUT = error_named("REQUEST_TIMED_OUT")
# Only another broker could be behind. The controller knows all topics.
_LASTING = {error_named("UNKNOWN_TOPIC_OR_PARTITION")}


class Verdict(NamedTuple):
    """The controller's answer for one topic. `said` is its own text."""

    topic: str
    error: ErrorCode
    said: str | None = None
    partitions: int = -1
    """The number of partitions that the topic has now; -1 if the answer does not have it."""
    may_be_done: bool = False
    """Whether an earlier try may have done it: its answer was lost, or it came too late."""


async def ask_controller(
    client: KafkaClient,
    what: str,
    topics: Sequence[str],
    request: Callable[[list[str], int], Request[R]],
    verdicts: Callable[[R], Iterable[Verdict]],
    *,
    deadline: Deadline,
    max_version: int | None = None,
) -> dict[str, Verdict | KafkaError]:
    """Return the verdict on each topic, or why there is none by the deadline.

    `request` makes the request about topics, with the time in ms that the broker may take. Topics
    whose error is temporary are asked about again, alone. Raises `KafkaTimeoutError` if there is no
    verdict at all.
    """
    found: dict[str, Verdict | KafkaError] = {}
    unsure: set[str] = set()
    is_elsewhere = False

    async def attempt(within: Deadline) -> None:
        nonlocal is_elsewhere
        missing = [each for each in topics if each not in found]
        controller = await _controller(client, within) if is_elsewhere else None
        within = within.within_ms(client.config.connection.request_timeout_ms)
        asked = request(missing, within.remaining_ms())
        try:
            answer = (
                # One that has just answered: a broker that Metadata names may have frozen.
                await client.send_to_one(asked, within, max_version=max_version)
                if controller is None
                else await client.send(asked, controller, within, max_version=max_version)
            )
        except RemoteError as error:
            if not isinstance(error, BootstrapError):  # Else nothing was sent.
                unsure.update(missing)
            raise
        failures = _take(what, verdicts(answer), missing, found, unsure)
        is_elsewhere = any(each.error == _NOT_CONTROLLER for each in failures)
        if failures:
            raise failures[0]
        for each in missing:
            if each not in found:
                raise ProtocolError(f"{what} {each!r}: the answer leaves it out")

    try:
        await client.retrying(what, attempt, timeout_ms=deadline.remaining_ms())
    except KafkaTimeoutError as error:
        if not found:
            raise
        found |= {each: error for each in topics if each not in found}
    return found


async def _controller(client: KafkaClient, deadline: Deadline) -> Broker:
    answer = await client.send_to_any(MetadataRequest(topics=[]), deadline)
    client.cluster.update(answer)
    found = client.cluster.brokers.get(answer.controller_id)
    if found is None:
        raise BrokerError(_NOT_CONTROLLER, "Metadata", "no broker knows the controller")
    return found


def _take(
    what: str,
    verdicts: Iterable[Verdict],
    asked: Sequence[str],
    found: dict[str, Verdict | KafkaError],
    unsure: set[str],
) -> list[BrokerError]:
    failures: list[BrokerError] = []
    for each in verdicts:
        if each.topic not in asked:
            continue
        if each.error.retriable and each.error not in _LASTING:
            failures.append(refusal(each.error, f"{what} {each.topic!r}", each.said))
            if each.error == _TIMED_OUT:  # It may still be done.
                unsure.add(each.topic)
        else:
            found[each.topic] = each._replace(may_be_done=each.topic in unsure)
    return failures
