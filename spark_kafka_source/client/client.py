"""A client of one Kafka cluster: a connection to each broker, the leaders, the coordinators.

A client belongs to one thread at a time. Only `close` may be called from another thread: it ends
all waiting. The module is long because all requests of the package go through one class.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.client.asked import LONGEST_SILENCE_MS, Asked
from spark_kafka_source.client.cluster import (
    Broker,
    Cluster,
    CoordinatorKey,
    CoordinatorKind,
    Topic,
)
from spark_kafka_source.client.config import ClientConfig
from spark_kafka_source.client.connections import Connections
from spark_kafka_source.client.race import race
from spark_kafka_source.client.traffic import Traffic
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import (
    BootstrapError,
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
    RebootstrapError,
    Remedy,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.net import (
    Address,
    BrokerHistory,
    Conversation,
    Deadline,
    Retry,
    Wait,
    pause,
    run,
    together,
    wait_for,
)
from spark_kafka_source.options.kinds import INT32_MAX
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from spark_kafka_source.topic_partition import TopicPartition

R = TypeVar("R", bound=Response)
T = TypeVar("T")

KeepsRole: TypeAlias = Callable[[], Conversation[bool]]
"""A question to the other brokers: whether a silent one keeps its role."""

LOOKUP_MS = 10_000
"""How long a lookup goes on. Its error is then logged, and the question is asked anew."""

# FindCoordinator asks for several keys at once from v4 on.
_FIND_ONE_COORDINATOR = 3
_WORTH_ONE_REQUEST = 2
_UNKNOWN_NODE = -1
_REBOOTSTRAP_REQUIRED = error_named("REBOOTSTRAP_REQUIRED").code
# If all known brokers are gone, the bootstrap addresses must have their turn in time (KIP-899).
_MOST_KNOWN_TRIED = 3


class KafkaClient:
    """A client that sends requests to brokers by role, and retries by each error's remedy.

    Most methods are conversations: await them within another one, or give them to `run`.
    """

    def __init__(
        self,
        config: ClientConfig,
        cluster: Cluster | None = None,
        history: BrokerHistory | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        """Create a client. It shares `cluster` and `history` with other clients; see `sibling`.

        `traffic` records its connections and requests, for metrics.
        """
        self.config = config
        self.cluster = cluster or Cluster()
        self.history = history or BrokerHistory()
        checked_by = self.cluster if config.metadata_cluster_check_enable else None
        self.connections = Connections(
            config.connection, self.history, traffic, checked_by=checked_by
        )
        self._retry = Retry(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self.pause_seconds = self._retry.pause_seconds
        """Returns the pause after so many tries, for callers that cannot wait in `retrying`."""

    def __enter__(self) -> "KafkaClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sibling(self) -> "KafkaClient":
        """Return a client for another thread, with its own connections.

        The clients share metadata, coordinators, and the knowledge of which addresses fail.
        """
        traffic = self.connections.traffic
        return KafkaClient(self.config, self.cluster, self.history, traffic)

    def close(self) -> None:
        """Close all connections. Calls that still wait on one raise. Never raises itself."""
        self.connections.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.connections.is_closed

    def run(self, conversation: Conversation[T]) -> T:
        """Hold a conversation to its end in this thread, and return its result.

        Raises `ClosedError` within the conversation once the client is closed.
        """
        return run(conversation, self._block)

    def _block(self, wait: Wait) -> None:
        if wait.sockets:
            wait.block()
        elif self.connections.closing.wait(wait.until.remaining_seconds()):
            raise ClosedError("the client is closed")

    # -- trying again ------------------------------------------------------------------------------

    async def retrying(
        self,
        what: str,
        attempt: Callable[[Deadline], Conversation[T]],
        *,
        timeout_ms: int | None = None,
        first_pause_ms: int = INT32_MAX,
    ) -> T:
        """Return the first answer of `attempt`. Try again by each error's remedy.

        `timeout_ms` is `default.api.timeout.ms` by default. As long as no broker was ever reached,
        the shorter of it and `request.timeout.ms` counts. The first pause is at most
        `first_pause_ms`. Errors: see `Retry.run`.
        """
        retry = self._retry.beginning_with(first_pause_ms)
        timeout_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = Deadline.after_ms(timeout_ms)
        if not self.history.was_reached:
            first_contact = deadline.within_ms(self.config.connection.request_timeout_ms)
            try:
                return await retry.run(what, attempt, self.recover, first_contact)
            except (KafkaTimeoutError, BootstrapError):
                # A broker may have answered amid the last try, with no time left for the request.
                if deadline.expired or not self.history.was_reached:
                    raise
        return await retry.run(what, attempt, self.recover, deadline)

    def recover(self, error: KafkaError) -> None:
        """Forget leaders and coordinators if `error` says that they moved. The next try asks."""
        if not self.history.was_reached:
            self.history.last_error = error
        if error.remedy is Remedy.REFRESH_METADATA:
            self.cluster.forget_leaders()
        if error.remedy in (Remedy.FIND_COORDINATOR, Remedy.REFRESH_METADATA):
            self.cluster.coordinators.clear()

    # -- sending -----------------------------------------------------------------------------------

    async def send(
        self,
        request: Request[R],
        broker: Broker,
        deadline: Deadline,
        *,
        max_version: int | None = None,
        keeps_role: KeepsRole | None = None,
    ) -> R:
        """Send one request to one broker, once, and return the answer.

        First wait while the broker throttles the client. `keeps_role` is called if the broker stays
        silent; see `answer_of`. Raises what the connection raises.
        """
        deadline = deadline.within_ms(self.config.connection.request_timeout_ms)
        await self.wait_out_throttle(broker.address, deadline)
        return await self.answer_of(
            self.ask(request, broker, deadline, max_version=max_version), keeps_role
        )

    def ask(
        self,
        request: Request[R],
        broker: Broker,
        deadline: Deadline,
        *,
        max_version: int | None = None,
        is_held: bool = False,
        most_in_flight: int = 1,
    ) -> Asked[R]:
        """Begin to send one request, and do not wait for the answer. `Asked.answer` raises errors.

        With `is_held`, for an answer that the broker may hold back, only `deadline` counts.
        Otherwise `request.timeout.ms` counts, too. With more than one `most_in_flight` the request
        goes behind others to the same broker. `connections` tells whether there is room for it,
        and how long the broker throttles the client.
        """
        if not is_held:
            deadline = deadline.within_ms(self.config.connection.request_timeout_ms)
        address = broker.address
        return Asked(
            self.connections, request, address, deadline, max_version, most_in_flight=most_in_flight
        )

    async def answer_of(self, asked: Asked[R], keeps_role: KeepsRole | None = None) -> R:
        """Wait for an answer, but not from a broker that has lost its role meanwhile.

        A frozen broker is still connected. So while a broker is silent, `keeps_role` is called
        every two seconds. Raises `RequestTimeoutError` if the broker does not keep its role.
        """
        look_at = Deadline.after_ms(LONGEST_SILENCE_MS)
        while not asked.is_over():
            await wait_for((asked,), Deadline.first(asked.deadline, look_at))
            if not look_at.expired:
                continue
            is_doubted = not asked.is_over() and asked.is_silent
            if is_doubted and keeps_role is not None and not await keeps_role():
                asked.advance()  # The answer may have come meanwhile.
                asked.give_up("another broker has its role by now, so it is given up while")
            look_at = Deadline.after_ms(LONGEST_SILENCE_MS)
        return asked.answer()

    async def send_to_coordinator(
        self,
        request: Request[R],
        key: CoordinatorKey,
        deadline: Deadline,
        *,
        max_version: int | None = None,
    ) -> R:
        """Send one request to the coordinator of this key, and return the answer.

        A frozen coordinator costs only a part of the time. Raises as `coordinator`, `send` and
        `answer_of` do.
        """
        coordinator = await self.coordinator(key, deadline)
        return await self.send(
            request,
            coordinator,
            deadline,
            max_version=max_version,
            keeps_role=lambda: self.still_coordinates(coordinator, key),
        )

    async def send_to_each(
        self,
        requests: Mapping[Broker, Request[R]],
        deadline: Deadline,
        *,
        max_version: int | None = None,
    ) -> dict[Broker, R | KafkaError]:
        """Ask all these brokers at once, once. Return each one's answer, or its error.

        `ask_each` asks the brokers that have a role for some keys, and tries again.
        """
        conversations = await together(
            self.send(request, broker, deadline, max_version=max_version)
            for broker, request in requests.items()
        )
        return {
            broker: held.error() or held.result()
            for broker, held in zip(requests, conversations, strict=True)
        }

    async def send_to_any(
        self,
        request: Request[R],
        deadline: Deadline,
        *,
        max_version: int | None = None,
        skip: Address | None = None,
    ) -> R:
        """Send a request that changes nothing to brokers by turns, and return the first answer.

        The turns follow each other quickly, as RFC 8305 does with the addresses of one name: first
        connected brokers, then other known brokers, bootstrap addresses, and last all addresses
        that failed. A broker of a later turn wins if it answers first. `skip` gets no turn.

        Raises `BootstrapError` with the error of each address, or the first of these errors that
        is not retriable, such as that of an address where another server listens. No other broker
        has its turn after one refuses the login: the same password again could lock the account.
        """
        _, answer = await self._first_answer(request, deadline, max_version, skip)
        return answer

    async def responsive_broker(self, deadline: Deadline) -> Broker:
        """Return the first broker to answer, for a request that must go to one broker only.

        Its node id is -1: not known.
        """
        address, _ = await self._first_answer(MetadataRequest(topics=[]), deadline, None, None)
        return Broker(_UNKNOWN_NODE, address)

    async def _first_answer(
        self, request: Request[R], deadline: Deadline, max_version: int | None, skip: Address | None
    ) -> tuple[Address, R]:
        candidates = self._candidates(skip)
        if candidates:  # The best one is throttled only if all are.
            await self.wait_out_throttle(candidates[0], deadline)

        def ask(address: Address) -> Asked[R]:
            broker = Broker(_UNKNOWN_NODE, address)
            return self.ask(request, broker, deadline, max_version=max_version)

        return await race(candidates, ask, deadline)

    def _candidates(self, skip: Address | None) -> list[Address]:
        """Return at most three known brokers, connected ones first, and all bootstrap addresses.

        Each part is in random order. Addresses that failed or throttle the client are at the end.
        """
        known = [broker.address for broker in self.cluster.brokers.values()]
        bootstrap = list(self.config.bootstrap_servers)
        CHANCE.shuffle(known)
        CHANCE.shuffle(bootstrap)
        known.sort(key=lambda address: not self.connections.has(address))
        candidates = dict.fromkeys([*known[:_MOST_KNOWN_TRIED], *bootstrap])
        best_first = self.history.best_first(each for each in candidates if each != skip)
        return sorted(best_first, key=self.connections.throttled_seconds)

    async def wait_out_throttle(self, address: Address, deadline: Deadline) -> None:
        """Wait, at most until the deadline, while a broker throttles the client (KIP-219)."""
        throttled_seconds = self.connections.throttled_seconds(address)
        if throttled_seconds > 0:
            await pause(min(throttled_seconds, deadline.remaining_seconds()))

    # -- metadata ----------------------------------------------------------------------------------

    async def topics(
        self,
        names: Iterable[str] | None,
        deadline: Deadline,
        *,
        skip: Address | None = None,
        create: bool = False,
    ) -> list[Topic]:
        """Ask once for the named topics, or for all with None. Each `Topic` has its error.

        With `create` a broker may create the topics if its `auto.create.topics.enable` is on.
        """
        named = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=create)
        response = await self.send_to_any(request, deadline, skip=skip)
        if response.error_code == _REBOOTSTRAP_REQUIRED:
            self.cluster.forget_brokers()
            self.connections.close_all()
            raise RebootstrapError("the broker that was asked for metadata left the cluster")
        topics = self.cluster.update(response)
        now_seconds = time.monotonic()
        self.cluster.learnt_at_seconds.update({topic.name: now_seconds for topic in topics})
        return topics

    async def leaders(
        self, topic_partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, tuple[Broker, int]]:
        """Return each partition's leader and leader epoch. Ask for unknown or too old metadata."""
        topic_partitions = list(topic_partitions)
        unknown = self.unknown_topics(topic_partitions)
        if unknown:
            await self.topics(unknown, deadline)
        return {each: self.cluster.leader(each) for each in topic_partitions}

    async def still_leads(self, broker: Broker, topic_partitions: Iterable[TopicPartition]) -> bool:
        """Whether a silent broker still leads any of these partitions, as the others see it.

        True if no other broker answers.
        """
        topic_partitions = list(topic_partitions)
        names = sorted({partition.topic for partition in topic_partitions})
        self.history.failed(broker.address)
        try:
            await self.topics(names, Deadline.after_ms(LONGEST_SILENCE_MS), skip=broker.address)
        except KafkaError:
            return True
        return any(self.cluster.is_led_by(broker, partition) for partition in topic_partitions)

    async def still_coordinates(self, broker: Broker, key: CoordinatorKey) -> bool:
        """Whether a silent broker still coordinates this key, as the others see it.

        True if no other broker answers.
        """
        self.history.failed(broker.address)
        deadline = Deadline.after_ms(LONGEST_SILENCE_MS)
        try:
            coordinator = await self._find_coordinator(key, deadline, skip=broker.address)
        except KafkaError:
            return True
        self.cluster.coordinators[key] = coordinator
        return coordinator == broker

    def unknown_topics(self, topic_partitions: Iterable[TopicPartition]) -> list[str]:
        """Return the topics whose metadata lacks a leader of these partitions, or is too old."""
        topic_partitions = list(topic_partitions)
        unknown = self.cluster.missing(topic_partitions)
        unknown += sorted(filter(self._is_too_old, {each.topic for each in topic_partitions}))
        return list(dict.fromkeys(unknown))

    def _is_too_old(self, name: str) -> bool:
        age_seconds = time.monotonic() - self.cluster.learnt_at_seconds.get(name, 0.0)
        return age_seconds * 1000 > self.config.metadata_max_age_ms

    async def coordinator(self, key: CoordinatorKey, deadline: Deadline) -> Broker:
        """Return the broker that coordinates this key. Raises `BrokerError` if there is none."""
        broker = self.cluster.coordinators.get(key)  # Other threads may remove the key any time.
        if broker is None:
            broker = await self._find_coordinator(key, deadline)
            self.cluster.coordinators[key] = broker
        return broker

    async def learn_coordinators(
        self, kind: CoordinatorKind, keys: Iterable[str], deadline: Deadline
    ) -> None:
        """Ask for two or more unknown coordinators in one request, if the broker can (KIP-699).

        Nothing is learnt about a key with an error: `coordinator` raises the error.
        """
        unknown = [
            name for name in keys if CoordinatorKey(kind, name) not in self.cluster.coordinators
        ]
        if len(unknown) < _WORTH_ONE_REQUEST:
            return
        request = FindCoordinatorRequest(key_type=kind.value, coordinator_keys=unknown)
        with contextlib.suppress(UnsupportedVersionError):
            answer = await self.send_to_any(request, deadline)
            for found in answer.coordinators:
                if found.key in unknown and not found.error_code:
                    broker = Broker(found.node_id, Address(found.host, found.port))
                    self.cluster.coordinators[CoordinatorKey(kind, found.key)] = broker

    async def _find_coordinator(
        self, key: CoordinatorKey, deadline: Deadline, skip: Address | None = None
    ) -> Broker:
        request = FindCoordinatorRequest(key=key.key, key_type=key.kind.value)
        answer = await self.send_to_any(
            request, deadline, max_version=_FIND_ONE_COORDINATOR, skip=skip
        )
        if answer.error_code:
            raise refusal(
                answer.error_code,
                f"FindCoordinator of {key}",
                answer.error_message,
                # The code tells whether the group or the transactional id was denied.
                group_id=key.key,
                transactional_id=key.key,
                access=self.cluster.access,
            )
        return Broker(answer.node_id, Address(answer.host, answer.port))
