"""One question about many groups or transactions, sent to all their coordinators at once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from spark_kafka_source.client import Broker, CoordinatorKey, CoordinatorKind, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import BrokerError, KafkaError, ProtocolError
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import Request, Response

A = TypeVar("A")
R = TypeVar("R", bound=Response)


class Told(NamedTuple):
    """The key and the error, if any, in the answer for one group or transactional id."""

    key: str
    error_code: int
    error_message: str | None = None


async def ask_coordinators(
    client: KafkaClient,
    what: str,
    keys: Iterable[str],
    request: Callable[[list[str]], Request[R]],
    answers: Callable[[R, Broker], Iterable[tuple[Told, A]]],
    *,
    kind: CoordinatorKind = CoordinatorKind.GROUP,
    max_version: int | None = None,
    timeout_ms: int | None = None,
) -> dict[str, A | BrokerError]:
    """Return the answer for each key, or its final error. Send one request to each broker.

    Keys are groups or transactional ids. Keys whose coordinator has moved, or is not ready, are
    asked for again until `timeout_ms` (default `default.api.timeout.ms`). Then raises
    `KafkaTimeoutError`. Raises `UnsupportedVersionError` if a broker does not have the API, or none
    of its versions up to `max_version`.
    """
    keys_asked = [CoordinatorKey(kind, each) for each in dict.fromkeys(keys)]
    found: dict[str, A | BrokerError] = {}

    async def attempt(deadline: Deadline) -> dict[str, A | BrokerError]:
        by_broker = await _by_coordinator(client, kind, keys_asked, found, deadline)
        requests = {
            broker: request([each.key for each in mine]) for broker, mine in by_broker.items()
        }
        failures: list[KafkaError] = []
        answered = await client.send_to_each(requests, deadline, max_version=max_version)
        for broker, answer in answered.items():
            if isinstance(answer, KafkaError):
                failures.append(answer)
            else:
                failures += _take(what, answers(answer, broker), found, by_broker[broker])
        if failures:
            raise min(failures, key=lambda failure: failure.has_remedy)
        return {each.key: _found(what, each, found) for each in keys_asked}

    return await client.retrying(what, attempt, timeout_ms=timeout_ms) if keys_asked else found


async def _by_coordinator(
    client: KafkaClient,
    kind: CoordinatorKind,
    keys: Sequence[CoordinatorKey],
    found: dict[str, A | BrokerError],
    deadline: Deadline,
) -> dict[Broker, list[CoordinatorKey]]:
    """Return the keys without an answer by coordinator. A final error is the answer of its key."""
    missing = [each for each in keys if each.key not in found]
    await client.learn_coordinators(kind, [each.key for each in missing], deadline)
    by_broker: dict[Broker, list[CoordinatorKey]] = defaultdict(list)
    for each in missing:
        try:
            coordinator = await client.coordinator(each, deadline)
        except BrokerError as error:
            if error.retriable:
                raise
            found[each.key] = error
        else:
            by_broker[coordinator].append(each)
    return by_broker


def _take(
    what: str,
    answers: Iterable[tuple[Told, A]],
    found: dict[str, A | BrokerError],
    asked: Sequence[CoordinatorKey],
) -> list[KafkaError]:
    failures: list[KafkaError] = []
    asked_by_key = {each.key: each for each in asked}
    for told, answer in answers:
        key = asked_by_key.get(told.key)
        if key is None:
            continue
        if not told.error_code:
            found[told.key] = answer
            continue
        error = refusal(
            told.error_code,
            f"{what} of {key}",
            told.error_message,
            group_id=key.key,
            transactional_id=key.key,
        )
        if error.retriable:
            failures.append(error)
        else:
            found[told.key] = error
    return failures


def _found(what: str, key: CoordinatorKey, found: dict[str, A | BrokerError]) -> A | BrokerError:
    if key.key not in found:
        raise ProtocolError(f"{what} of {key}: the answer leaves it out")
    return found[key.key]
