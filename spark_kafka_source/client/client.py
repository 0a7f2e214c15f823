"""One client of one Kafka cluster: a connection to each broker, the leaders, the coordinators.

It belongs to one thread at a time. Only `close` may be called from another: it wakes whoever waits.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar, cast

from spark_kafka_source.client.cluster import Broker, Cluster, Topic
from spark_kafka_source.client.config import ClientConfig
from spark_kafka_source.client.retry import Retry
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    ClosedError,
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
    Remedy,
    RemoteError,
    UnsupportedVersionError,
    error_code,
    error_named,
    lacking,
)
from spark_kafka_source.net import Address, Connection, Deadline, refuses_login
from spark_kafka_source.protocol import (
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataRequestTopic,
    Request,
    Response,
)
from spark_kafka_source.topic_partition import TopicPartition

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_GROUP_KEY_TYPE = 0
# FindCoordinator asks for several groups at once from v4 on.
_FIND_ONE_COORDINATOR = 3
_WORTH_ONE_REQUEST = 2
_REBOOTSTRAP_REQUIRED = error_named("REBOOTSTRAP_REQUIRED").code
# Where all known brokers are gone, the bootstrap addresses must have their turn in time (KIP-899).
_MOST_KNOWN_TRIED = 3


class Asked(Generic[R]):
    """A request whose answer is still to come. Until it is taken, nothing else is sent there.

    One that is never taken costs the connection.
    """

    def __init__(self, client: "KafkaClient", connection: Connection, deadline: Deadline) -> None:
        self._client = client
        self._connection = connection
        self._deadline = deadline

    def answer(self, deadline: Deadline | None = None) -> R:
        """Waits until the request's own deadline, or another one. Raises as a connection does."""
        response = cast(R, self._connection.receive(deadline or self._deadline))
        return self._client.heard(self._connection, response)

    def fileno(self) -> int:
        """Of the connection that the answer comes on."""
        return self._connection.fileno()


class KafkaClient:
    """Sends requests to brokers by their role, and tries again by the table of errors."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.cluster = Cluster()
        self.requests_sent = 0
        self._connections: dict[Address, Connection] = {}
        self._coordinators: dict[str, Broker] = {}
        self._throttled_until_seconds: dict[Address, float] = {}
        self._learnt_at_seconds: dict[str, float] = {}
        self._closing = threading.Event()
        # Waiting on it in place of sleeping, so that `close` ends a pause, too.
        self._pause = self._closing.wait
        self._retry = Retry(config.retry_backoff_ms, config.retry_backoff_max_ms, self._pause)

    def __enter__(self) -> "KafkaClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections; what still waits on one raises. Never raises itself."""
        self._closing.set()
        for connection in list(self._connections.values()):
            connection.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closing.is_set()

    # -- trying again ------------------------------------------------------------------------------

    def retrying(
        self, what: str, attempt: Callable[[Deadline], T], *, timeout_ms: int | None = None
    ) -> T:
        """The first answer of `attempt`, tried again by each error's remedy.

        `timeout_ms` is `default.api.timeout.ms` unless given; before any broker was ever reached,
        `request.timeout.ms` where that is shorter. Errors: see `Retry.run`.
        """
        timeout_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = Deadline.after_ms(timeout_ms)
        if not self.cluster.brokers:
            first_contact = deadline.within_ms(self.config.connection.request_timeout_ms)
            try:
                return self._retry.run(what, attempt, self.recover, first_contact)
            except KafkaTimeoutError:
                if not self.cluster.brokers:
                    raise
        return self._retry.run(what, attempt, self.recover, deadline)

    def recover(self, error: KafkaError) -> None:
        """Forgets what `error` says is not so any more, so that the next try asks for it anew."""
        if error.remedy is Remedy.REFRESH_METADATA:
            self.cluster.forget_leaders()
        if error.remedy in (Remedy.FIND_COORDINATOR, Remedy.REFRESH_METADATA):
            self._coordinators.clear()

    def pause_seconds(self, tries: int) -> float:
        """How long to wait after so many tries, for who cannot wait in `retrying`."""
        return self._retry.pause_seconds(tries)

    # -- sending -----------------------------------------------------------------------------------

    def send(
        self,
        request: Request[R],
        broker: Broker,
        deadline: Deadline,
        *,
        max_version: int | None = None,
    ) -> R:
        """One request to one broker, once. Raises what the connection raises."""
        return self._ask(request, broker.address, deadline, max_version).answer()

    def ask(
        self,
        request: Request[R],
        broker: Broker,
        deadline: Deadline,
        *,
        max_version: int | None = None,
    ) -> "Asked[R]":
        """Sends one request and does not wait for its answer. Raises as `send` does."""
        return self._ask(request, broker.address, deadline, max_version)

    def send_to_each(
        self,
        requests: Mapping[Broker, Request[R]],
        deadline: Deadline,
        *,
        max_version: int | None = None,
    ) -> dict[Broker, R | KafkaError]:
        """Each broker's answer to its request, or why there is none. All are asked at once.

        Once one of them refuses the login, no other is asked to take it.
        """
        deadline = self._request_deadline(deadline)
        answers: dict[Broker, R | KafkaError] = {}
        asked: dict[Broker, Asked[R]] = {}
        refusal: KafkaError | None = None
        for broker, request in requests.items():
            if refusal:
                answers[broker] = refusal
                continue
            try:
                asked[broker] = self.ask(request, broker, deadline, max_version=max_version)
            except KafkaError as error:
                answers[broker] = error
                refusal = error if refuses_login(error) else None
        for broker, awaited in asked.items():
            try:
                answers[broker] = awaited.answer()
            except KafkaError as error:
                answers[broker] = error
        return answers

    def send_to_any(
        self, request: Request[R], deadline: Deadline, *, max_version: int | None = None
    ) -> R:
        """One request to the first broker that answers: connected, then others, then bootstrap.

        Raises `BootstrapError` with what went wrong at each address, or the first error among them
        that has no remedy, such as that of an address where no broker listens but another server.
        A broker that refuses the login is the last: the same password at the others could lock
        the account.
        """
        failures: list[RemoteError] = []
        for address in self._candidates():
            try:
                return self._ask(request, address, deadline, max_version).answer()
            except RemoteError as error:
                if refuses_login(error):
                    raise
                failures.append(error)
        for failure in failures:
            if not failure.retriable:
                raise failure
        raise BootstrapError([str(failure) for failure in failures])

    def _candidates(self) -> list[Address]:
        """Some known brokers at random, connected first; then always the bootstrap addresses."""
        known = [broker.address for broker in self.cluster.brokers.values()]
        random.shuffle(known)
        known.sort(key=lambda address: not self._is_connected(address))
        return list(dict.fromkeys([*known[:_MOST_KNOWN_TRIED], *self.config.bootstrap_servers]))

    def _is_connected(self, address: Address) -> bool:
        connection = self._connections.get(address)
        return connection is not None and connection.usable

    def _ask(
        self,
        request: Request[R],
        address: Address,
        deadline: Deadline,
        max_version: int | None = None,
    ) -> Asked[R]:
        deadline = self._request_deadline(deadline)
        connection = self._connection(address, deadline)
        connection.send(request, deadline, max_version=max_version)
        self.requests_sent += 1
        return Asked(self, connection, deadline)

    def _request_deadline(self, deadline: Deadline) -> Deadline:
        return deadline.within_ms(self.config.connection.request_timeout_ms)

    def _connection(self, address: Address, deadline: Deadline) -> Connection:
        self._wait_out_throttle(address, deadline)
        if self.closed:
            raise ClosedError("the client is closed")
        connection = self._connections.get(address)
        if connection is not None and connection.usable:
            return connection
        if connection is not None:
            connection.close()
        return Connection.connect(address, self.config.connection, deadline, self._opened)

    def _opened(self, connection: Connection) -> None:
        self._connections[connection.address] = connection
        if self.closed:  # `close` came between, and did not see this one.
            connection.close()

    def heard(self, connection: Connection, response: R) -> R:
        """A broker over its quota answers at once and expects silence for a while (KIP-219)."""
        throttle_time_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_time_ms > 0:
            until_seconds = time.monotonic() + throttle_time_ms / 1000
            self._throttled_until_seconds[connection.address] = until_seconds
        return response

    def _wait_out_throttle(self, address: Address, deadline: Deadline) -> None:
        until_seconds = self._throttled_until_seconds.get(address, 0.0)
        pause_seconds = min(until_seconds - time.monotonic(), deadline.remaining_seconds())
        if pause_seconds > 0:
            self._pause(pause_seconds)

    # -- metadata ----------------------------------------------------------------------------------

    def topics(self, names: Iterable[str] | None, deadline: Deadline) -> list[Topic]:
        """Asks for the named topics, or for all with None, once; errors are in each `Topic`."""
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        response = self.send_to_any(request, deadline)
        if response.error_code == _REBOOTSTRAP_REQUIRED:
            self._rebootstrap()
        topics = self.cluster.update(response)
        now_seconds = time.monotonic()
        self._learnt_at_seconds.update({topic.name: now_seconds for topic in topics})
        return topics

    def _rebootstrap(self) -> None:
        """Forgets all brokers where one says that it is not of this cluster any more (KIP-1102)."""
        self.cluster.brokers.clear()
        for connection in self._connections.values():
            connection.close()
        raise ConnectionFailedError("the broker asks to bootstrap anew (REBOOTSTRAP_REQUIRED)")

    def leaders(
        self, topic_partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, tuple[Broker, int]]:
        """Who leads each partition, and its leader epoch; asks for what is unknown or too old."""
        topic_partitions = list(topic_partitions)
        unknown = self.unknown_topics(topic_partitions)
        if unknown:
            self.topics(unknown, deadline)
        return {each: self.cluster.leader(each) for each in topic_partitions}

    def unknown_topics(self, topic_partitions: Iterable[TopicPartition]) -> list[str]:
        """The topics to ask for, since these partitions' leaders are unknown or too old."""
        topic_partitions = list(topic_partitions)
        unknown = self.cluster.missing(topic_partitions)
        unknown += sorted(filter(self._is_too_old, {each.topic for each in topic_partitions}))
        return list(dict.fromkeys(unknown))

    def _is_too_old(self, name: str) -> bool:
        age_seconds = time.monotonic() - self._learnt_at_seconds.get(name, 0.0)
        return age_seconds * 1000 > self.config.metadata_max_age_ms

    def coordinator(self, group_id: str, deadline: Deadline) -> Broker:
        """The broker that coordinates a group, or the `BrokerError` that says there is none."""
        if group_id not in self._coordinators:
            self._coordinators[group_id] = self._find_coordinator(group_id, deadline)
        return self._coordinators[group_id]

    def learn_coordinators(self, group_ids: Iterable[str], deadline: Deadline) -> None:
        """Asks for those that are unknown, all at once where brokers can (KIP-699).

        Of one with an error nothing is learnt: `coordinator` raises it.
        """
        unknown = [each for each in group_ids if each not in self._coordinators]
        if len(unknown) < _WORTH_ONE_REQUEST:
            return
        request = FindCoordinatorRequest(key_type=_GROUP_KEY_TYPE, coordinator_keys=unknown)
        with contextlib.suppress(UnsupportedVersionError):
            for found in self.send_to_any(request, deadline).coordinators:
                if found.key in unknown and not found.error_code:
                    address = Address(found.host, found.port)
                    self._coordinators[found.key] = Broker(found.node_id, address)

    def _find_coordinator(self, group_id: str, deadline: Deadline) -> Broker:
        request = FindCoordinatorRequest(key=group_id, key_type=_GROUP_KEY_TYPE)
        found = self.send_to_any(request, deadline, max_version=_FIND_ONE_COORDINATOR)
        if found.error_code:
            error = error_code(found.error_code)
            said = (found.error_message or "").rstrip(".")
            detail = ": ".join(filter(None, (said, lacking(error, group_id=group_id))))
            raise BrokerError(error, f"FindCoordinator of group {group_id!r}", detail)
        return Broker(found.node_id, Address(found.host, found.port))
