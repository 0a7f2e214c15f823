"""Changes of topics and of configurations, which brokers make on request.

Kafka 4 passes a change of topics on from any broker to the controller. Brokers with ZooKeeper
refuse it: NOT_CONTROLLER. Metadata then names the controller. In Kafka 4 it names any broker.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from spark_kafka_source.client import Broker, KafkaClient, Role, Told, ask_each
from spark_kafka_source.client.configs import ConfigResource, by_broker
from spark_kafka_source.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    error_named,
)
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.metadata import MetadataRequest

R = TypeVar("R", bound=Response)

_NOT_CONTROLLER = error_named("NOT_CONTROLLER")
_TIMED_OUT = error_named("REQUEST_TIMED_OUT")
_UNKNOWN = error_named("UNKNOWN_TOPIC_OR_PARTITION")


class Verdict(NamedTuple):
    """The brokers' final answer for one topic or broker. `message` is their own text."""

    resource: ConfigResource
    error: ErrorCode
    message: str | None = None
    partitions: int = -1
    """The number of partitions that the topic has now; -1 if the answer does not have it."""
    may_be_done: bool = False
    """Whether an earlier try may have done it: its answer was lost, or it came too late."""


def may_heal(error: ErrorCode) -> bool:
    """Whether it is worth asking again after this error. A missing topic stays missing."""
    return error.retriable and error != _UNKNOWN


async def ask_for_changes(
    client: KafkaClient,
    what: str,
    resources: Iterable[ConfigResource],
    request: Callable[[Sequence[ConfigResource], int], Request[R]],
    verdicts: Callable[[R], Iterable[Verdict]],
    *,
    deadline: Deadline,
    max_version: int | None = None,
) -> dict[ConfigResource, Verdict | KafkaError]:
    """Return the verdict on each resource, or why there is none by the deadline.

    `request` makes the request about resources, with the time in ms that the broker may take.
    Resources whose error is temporary are asked about again, alone. Raises `KafkaTimeoutError` if
    there is no verdict at all.
    """
    resources = list(resources)
    outcomes: dict[ConfigResource, Verdict | KafkaError] = {}
    changing = _ChangingBroker()
    tried: set[ConfigResource] = set()
    """The resources that a broker may have changed: no answer says that it has not."""
    unsure: set[ConfigResource] = set()

    def of_broker(asked: Sequence[ConfigResource]) -> Request[R]:
        unsure.update(tried.intersection(asked))
        tried.update(asked)
        within = deadline.within_ms(client.config.connection.request_timeout_ms)
        return request(asked, within.remaining_ms())

    def told(answer: R, _: Broker) -> Iterator[Told[ConfigResource, Verdict]]:
        all_verdicts = list(verdicts(answer))
        changing.is_elsewhere = any(each.error == _NOT_CONTROLLER for each in all_verdicts)
        for verdict in all_verdicts:
            resource, error = verdict.resource, verdict.error
            known = verdict._replace(may_be_done=resource in unsure)
            if not may_heal(error):
                yield Told(resource, known)
                continue
            if error != _TIMED_OUT:  # Else it may still be done.
                tried.discard(resource)
            yield Told(resource, known, error.code, verdict.message)

    try:
        await ask_each(
            client,
            what,
            Role(changing.find, _waits, lambda _: {}),
            resources,
            request=of_broker,
            answers=told,
            max_version=max_version,
            timeout_ms=deadline.remaining_ms(),
            on_answer=outcomes.update,
        )
    except KafkaTimeoutError as error:
        if not outcomes:
            raise
        outcomes |= {resource: error for resource in resources if resource not in outcomes}
    return outcomes


@dataclass(slots=True)
class _ChangingBroker:
    """The broker that makes a change. For topics it is any, or the controller."""

    is_elsewhere: bool = False
    """Whether a broker has just said that it is not the controller."""

    async def find(
        self, client: KafkaClient, keys: Sequence[ConfigResource], deadline: Deadline
    ) -> dict[ConfigResource, Broker | BrokerError]:
        """Return the broker to ask for each change: the broker that is to change, or another one.

        Another is one that has just answered: a broker that Metadata names may have frozen.
        """
        brokers: dict[ConfigResource, Broker | BrokerError] = {}
        for broker, changes in (await by_broker(client, keys, deadline)).items():
            another = _controller if self.is_elsewhere else KafkaClient.responsive_broker
            brokers |= dict.fromkeys(changes, broker or await another(client, deadline))
        return brokers


async def _controller(client: KafkaClient, deadline: Deadline) -> Broker:
    answer = await client.send_to_any(MetadataRequest(topics=[]), deadline)
    client.cluster.update(answer)
    controller = client.cluster.brokers.get(answer.controller_id)
    if controller is None:
        raise BrokerError(_NOT_CONTROLLER, "Metadata", "no broker knows the controller")
    return controller


async def _waits(_: KafkaClient, __: Broker, ___: Sequence[ConfigResource]) -> bool:
    """Return True: a broker that is slow to make a change keeps its role."""
    return True
