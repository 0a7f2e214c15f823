"""One question about many groups, put to all their coordinators at once until each has answered."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from spark_kafka_source.client import Broker, CoordinatorKey, CoordinatorKind, KafkaClient
from spark_kafka_source.errors import BrokerError, KafkaError, ProtocolError, error_code
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol import Request, Response

A = TypeVar("A")
R = TypeVar("R", bound=Response)


class Told(NamedTuple):
    """What an answer says of one group: an error, or else what `answers` makes of the rest."""

    group_id: str
    error_code: int
    error_message: str | None = None


def ask_coordinators(
    client: KafkaClient,
    what: str,
    group_ids: Iterable[str],
    request: Callable[[list[str]], Request[R]],
    answers: Callable[[R, Broker], Iterable[tuple[Told, A]]],
    *,
    max_version: int | None = None,
) -> dict[str, A | BrokerError]:
    """The answer for each group, or the error that will not heal, by one request to each broker.

    Groups whose coordinator has moved, or is not ready, are asked for again, alone, until
    `default.api.timeout.ms`; then raises `KafkaTimeoutError`. Raises `UnsupportedVersionError`
    where a broker does not have the API, or none of the versions up to `max_version`.
    """
    group_ids = list(dict.fromkeys(group_ids))
    found: dict[str, A | BrokerError] = {}

    def attempt(deadline: Deadline) -> dict[str, A | BrokerError]:
        by_broker = _by_coordinator(client, group_ids, found, deadline)
        requests = {broker: request(mine) for broker, mine in by_broker.items()}
        failures: list[KafkaError] = []
        for broker, answer in client.send_to_each(
            requests, deadline, max_version=max_version
        ).items():
            if isinstance(answer, KafkaError):
                failures.append(answer)
            else:
                failures += _take(what, answers(answer, broker), found, by_broker[broker])
        if failures:
            raise min(failures, key=lambda failure: failure.retriable)
        return {each: _found(what, each, found) for each in group_ids}

    return client.retrying(what, attempt) if group_ids else found


def _by_coordinator(
    client: KafkaClient,
    group_ids: Sequence[str],
    found: dict[str, A | BrokerError],
    deadline: Deadline,
) -> dict[Broker, list[str]]:
    """The groups to ask for yet; one without a coordinator for good has that as its answer."""
    missing = [each for each in group_ids if each not in found]
    client.learn_coordinators(CoordinatorKind.GROUP, missing, deadline)
    by_broker: dict[Broker, list[str]] = defaultdict(list)
    for group_id in missing:
        try:
            coordinator = client.coordinator(CoordinatorKey.of_group(group_id), deadline)
        except BrokerError as error:
            if error.retriable:
                raise
            found[group_id] = error
        else:
            by_broker[coordinator].append(group_id)
    return by_broker


def _take(
    what: str,
    answers: Iterable[tuple[Told, A]],
    found: dict[str, A | BrokerError],
    asked: Sequence[str],
) -> list[KafkaError]:
    failures: list[KafkaError] = []
    for told, answer in answers:
        if told.group_id not in asked:
            continue
        if not told.error_code:
            found[told.group_id] = answer
            continue
        where = f"{what} of group {told.group_id!r}"
        error = BrokerError(error_code(told.error_code), where, told.error_message)
        if error.retriable:
            failures.append(error)
        else:
            found[told.group_id] = error
    return failures


def _found(what: str, group_id: str, found: dict[str, A | BrokerError]) -> A | BrokerError:
    if group_id not in found:
        raise ProtocolError(f"{what} of group {group_id!r}: the answer leaves it out")
    return found[group_id]
