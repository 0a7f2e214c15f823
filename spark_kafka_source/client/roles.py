"""Roles of brokers, and questions about many keys to the brokers that have a role for them.

A broker leads partitions, and coordinates groups and transactional ids. `LEADER` and `COORDINATOR`
find such a broker, and tell whether a silent one keeps its role. `ask_each` asks all of them:

    await ask_each(client, what, LEADER, partitions, request=make_request, answers=told)
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from spark_kafka_source.client.client import KafkaClient
from spark_kafka_source.client.cluster import Broker, CoordinatorKey
from spark_kafka_source.client.unknown_topics import patient
from spark_kafka_source.denials import Access, refusal
from spark_kafka_source.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    ProtocolError,
    Remedy,
    error_code,
    error_named,
)
from spark_kafka_source.net import Conversation, Deadline, together
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.topic_partition import TopicPartition

K = TypeVar("K")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
R = TypeVar("R", bound=Response)

_OVER_QUOTA = error_named("THROTTLING_QUOTA_EXCEEDED")


@dataclass(frozen=True, slots=True)
class Role(Generic[K]):
    """What a broker is for a key, as three functions."""

    find: Callable[
        [KafkaClient, Sequence[K], Deadline], Conversation[Mapping[K, Broker | BrokerError]]
    ]
    """Returns the broker of each key, or why there is none. It asks about unknown ones, once."""
    keeps_role: Callable[[KafkaClient, Broker, Sequence[K]], Conversation[bool]]
    """Returns whether a silent broker keeps the role for any of the keys, as the others see it.

    True if no other broker answers.
    """
    names: Callable[[K], Mapping[str, str]]
    """Returns what the user needs a right on, by the names that `refusal` takes."""
    also_temporary: Mapping[ErrorCode, str] = field(default_factory=dict)
    """Errors to try again, too, with advice. By Kafka's table they last."""

    def refusal(
        self, code: int, what: str, key: K, *, said: str | None = None, access: Access = Access.READ
    ) -> BrokerError:
        """Return the error for a code in an answer about a key; see `denials.refusal`."""
        advice = self.also_temporary.get(error_code(code))
        error = refusal(code, what, said, advice=advice, access=access, **self.names(key))
        if advice is not None:
            error.remedy = Remedy.RETRY
        return error


async def _leaders(
    client: KafkaClient, keys: Sequence[TopicPartition], deadline: Deadline
) -> Mapping[TopicPartition, Broker | BrokerError]:
    if unknown := client.unknown_topics(keys):
        await client.topics(unknown, deadline)
    brokers: dict[TopicPartition, Broker | BrokerError] = {}
    for partition in keys:
        try:
            brokers[partition], _ = client.cluster.leader(partition)
        except BrokerError as error:
            brokers[partition] = error
    return brokers


async def _coordinators(
    client: KafkaClient, keys: Sequence[CoordinatorKey], deadline: Deadline
) -> Mapping[CoordinatorKey, Broker | BrokerError]:
    for kind in {each.kind for each in keys}:
        names = [each.key for each in keys if each.kind is kind]
        await client.learn_coordinators(kind, names, deadline)
    brokers: dict[CoordinatorKey, Broker | BrokerError] = {}
    for key in keys:
        try:
            brokers[key] = await client.coordinator(key, deadline)
        except BrokerError as error:
            brokers[key] = error
    return brokers


async def _still_coordinates(
    client: KafkaClient, broker: Broker, keys: Sequence[CoordinatorKey]
) -> bool:
    for key in keys:  # One after another: there may be thousands of groups.
        if await client.still_coordinates(broker, key):
            return True
    return False


LEADER: Role[TopicPartition] = Role(
    _leaders,
    KafkaClient.still_leads,
    lambda key: {"topic": key.topic},
    # A leader has no other word for remote storage that fails, or that it does not know yet just
    # after its start. Kafka's consumer tries again, too.
    {
        error_named("UNKNOWN_SERVER_ERROR"): "The broker's log says why. If the topic has tiered "
        "storage, its remote storage may have failed"
    },
)
"""The leader of a partition."""
COORDINATOR: Role[CoordinatorKey] = Role(
    _coordinators,
    _still_coordinates,
    # The code of a denial tells which of them was denied.
    lambda key: {"group_id": key.key, "transactional_id": key.key},
)
"""The coordinator of a group or a transactional id."""


class Told(NamedTuple, Generic[K, A_co]):
    """The answer for one key, or the error in its place. `error_message` is the broker's text."""

    key: K
    answer: A_co
    error_code: int = 0
    error_message: str | None = None


async def ask_each(
    client: KafkaClient,
    what: str,
    role: Role[K],
    keys: Iterable[K],
    *,
    request: Callable[[Sequence[K]], Request[R]],
    answers: Callable[[R, Broker], Iterable[Told[K, A]]],
    max_version: int | None = None,
    timeout_ms: int | None = None,
    on_answer: Callable[[Mapping[K, A]], None] = lambda _: None,
    instead: Callable[[BrokerError], A] | None = None,
) -> dict[K, A]:
    """Ask all brokers of the keys at once, one request to each, and return the answer for each key.

    `request` makes the request about the keys of one broker. `answers` yields what a response tells
    about each of its keys. Keys with a temporary error, as after their broker has lost the role,
    are asked about again, alone, for up to `timeout_ms` (default: `default.api.timeout.ms`). The
    wait for a silent broker ends when it has lost the role. A topic must stay unknown for about two
    seconds before that is an error.

    A lasting error of a key is raised, or `instead` makes the answer for the key from it. Raises
    `BrokerError`, which names the key, and `KafkaTimeoutError`. `on_answer` gets the answers of
    each broker as soon as they are here.
    """
    question = _Question(client, what, role, request, answers, max_version, on_answer, instead, {})
    missing = list(dict.fromkeys(keys))
    if missing:
        attempt = patient(partial(question.ask, missing))
        await client.retrying(what, attempt, timeout_ms=timeout_ms)
    return {key: question.results[key] for key in missing}


@dataclass(eq=False, slots=True)
class _Question(Generic[K, A, R]):
    """The arguments of `ask_each`, and the answers so far."""

    client: KafkaClient
    what: str
    role: Role[K]
    request: Callable[[Sequence[K]], Request[R]]
    answers: Callable[[R, Broker], Iterable[Told[K, A]]]
    max_version: int | None
    on_answer: Callable[[Mapping[K, A]], None]
    instead: Callable[[BrokerError], A] | None
    results: dict[K, A]

    async def ask(self, keys: Iterable[K], deadline: Deadline) -> None:
        """Ask once about the keys without an answer. Raises an error if one has none after that."""
        missing = [key for key in keys if key not in self.results]
        keys_of: dict[Broker, list[K]] = defaultdict(list)
        errors: list[KafkaError] = []
        for key, broker in (await self.role.find(self.client, missing, deadline)).items():
            if isinstance(broker, Broker):
                keys_of[broker].append(key)
            else:
                self._failed(key, broker, self.results, errors)
        conversations = await together(self._ask_one(*each, deadline) for each in keys_of.items())
        _raise_first([*errors, *filter(None, (each.error() for each in conversations))])
        for key in missing:
            if key not in self.results:
                raise ProtocolError(f"{self.what} of {key}: the answer leaves it out")

    async def _ask_one(self, broker: Broker, keys: Sequence[K], deadline: Deadline) -> None:
        response = await self.client.send(
            self.request(keys),
            broker,
            deadline,
            max_version=self.max_version,
            keeps_role=partial(self.role.keeps_role, self.client, broker, keys),
        )
        answers = list(self.answers(response, broker))
        # A broker that throttles the client may send nothing but the time to wait (KIP-219).
        if not answers and getattr(response, "throttle_time_ms", 0) > 0:
            raise BrokerError(_OVER_QUOTA, self.what)
        new: dict[K, A] = {}
        errors: list[KafkaError] = []
        wanted = set(keys)
        for answer in (answer for answer in answers if answer.key in wanted):
            if answer.error_code:
                self._failed(answer.key, self._error(answer), new, errors)
            else:
                new[answer.key] = answer.answer
        self.results.update(new)
        self.on_answer(new)
        _raise_first(errors)

    def _error(self, answer: Told[K, A]) -> BrokerError:
        return self.role.refusal(
            answer.error_code,
            f"{self.what} of {answer.key}",
            answer.key,
            said=answer.error_message,
            access=self.client.cluster.access,
        )

    def _failed(
        self, key: K, error: BrokerError, results: dict[K, A], errors: list[KafkaError]
    ) -> None:
        if self.instead is None or error.has_remedy:
            errors.append(error)
        else:
            results[key] = self.instead(error)


def _raise_first(errors: Sequence[KafkaError]) -> None:
    """Raise the first lasting error: other keys are not worth waiting for. Or the first of all."""
    if errors:
        raise min(errors, key=lambda error: error.has_remedy)
