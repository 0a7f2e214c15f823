"""A consumer's membership in its group, with its own thread.

That thread finds the coordinator, joins the group, and sends heartbeats. The thread that polls
makes all calls to listeners, and all calls of `on_assignment`. The two threads wait for each other
only in `leave`.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from spark_kafka_source.client import (
    LONGEST_SILENCE_MS,
    CoordinatorKey,
    KafkaClient,
    Retry,
)
from spark_kafka_source.errors import ClosedError, KafkaError
from spark_kafka_source.groups.assignors import Assignor, assignors_named
from spark_kafka_source.groups.classic import ClassicParticipant
from spark_kafka_source.groups.config import GroupConfig, GroupProtocol
from spark_kafka_source.groups.consumer import ConsumerParticipant
from spark_kafka_source.groups.listener import RebalanceListener
from spark_kafka_source.groups.lookups import partitions_to_assign, topic_names
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.participant import LeftError, Participant, Step
from spark_kafka_source.net import Deadline, wait_for
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.topic_partition import TopicPartition

R = TypeVar("R", bound=Response)

# Time for the thread to end after `close`. Nobody waits for the coordinator any more by then.
_LAST_WORDS_MS = 1_000
# A coordinator holds some answers back on purpose. Meanwhile the member looks it up less often.
_HELD_LOOK_MS = 3_000


@dataclass(frozen=True, slots=True)
class Hooks:
    """Two functions of the consumer that the membership calls.

    `is_ready` runs in the thread that polls. It returns whether the member may take its next step
    now. If not, the next `poll` calls it again, and no poll waits. `on_request` runs in the other
    thread. It gets the request to the coordinator, its duration in ms, and its error or None.
    """

    is_ready: Callable[[Step], bool] = lambda _: True
    on_request: Callable[[Request[Any], float, Exception | None], None] = lambda *_: None


class Membership:
    """A consumer's place in its group. Only the consumer's thread may use it.

    Other threads may only wait for `fileno`. Poll often, also while the consumer waits for records:
    if `kafka.max.poll.interval.ms` pass without a `poll`, the member leaves the group, and the
    consumer loses its partitions.
    """

    def __init__(
        self, client: KafkaClient, participant: Participant, hooks: Hooks | None = None
    ) -> None:
        """Take over `client`: nobody else may use it from now on, and `close` closes it."""
        self._client = client
        self._participant = participant
        self._key = CoordinatorKey.of_group(participant.config.group_id)
        self._hooks = hooks or Hooks()
        self._thread: threading.Thread | None = None
        self._is_ending = False
        # The last request of the thread, to which its next error belongs.
        self._asked: Request[Any] | None = None

    # -- the consumer's side -----------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] = (), regex: str | None = None) -> None:
        """Subscribe to these topics from the next `poll` on, in place of the earlier ones.

        With KIP-848 `regex` adds the topics that match an RE2 pattern; the coordinator matches it.
        The classic protocol raises `LocalError` for a pattern.
        """
        self._participant.subscribe(topics, regex)

    async def poll(self) -> None:
        """Take the member's next steps. Wait only for the listener.

        Call it once `fileno` is readable, and before records are handed out. Raises the errors of
        the listener and of assignors, and a `KafkaError` that has no remedy: a `BrokerError` such
        as GROUP_AUTHORIZATION_FAILED, `AuthenticationError`, `UnsupportedVersionError`. The next
        `poll` tries again, but FENCED_INSTANCE_ID stays.
        """
        self._start()
        self._participant.begin_poll()
        while (step := self._participant.next_step()) is not None:
            if not self._hooks.is_ready(step):
                return
            await step.run()

    def fileno(self) -> int:
        """Return a file descriptor that is readable once a `poll` has work.

        Wait for it and for records at once.
        """
        return self._participant.to_consumer.fileno()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """This member's partitions: during `revoked` the old ones, during `assigned` the new."""
        return self._participant.assignment

    @property
    def member(self) -> Member | None:
        """Identity of the member for commits, or None if there is no generation to commit in.

        With None, either the group rebalances (commit again later), or the partitions are lost
        already.
        """
        return self._participant.member

    @property
    def state(self) -> Enum:
        """State of the member in its protocol."""
        return self._participant.state

    def rejoin(self, reason: str) -> None:
        """Make the group divide the partitions again, from the next `poll` on (KIP-568)."""
        self._participant.rejoin(reason)

    def look_at_topics(self) -> None:
        """Tell the member that partitions were added. A leader divides them without delay."""
        self._participant.look_at_topics()

    async def leave(self, deadline: Deadline, reason: str = "the consumer unsubscribed") -> None:
        """Give up all partitions and leave the group. Tell the coordinator by `deadline`.

        Calls the listener's `revoked` or `lost`. A static member keeps its place. Errors of the
        coordinator are logged. Raises the errors of the listener. The consumer may subscribe again
        afterwards.
        """
        try:
            await self._participant.leave(deadline, reason)
        finally:
            while not self._participant.has_left and self._is_talking and not deadline.expired:
                await self._wait_for_news(deadline)

    async def close(self, deadline: Deadline) -> None:
        """Leave, and end the thread and its connections, by `deadline` plus a second.

        Works once.
        """
        if self._is_ending:
            return
        try:
            await self.leave(deadline, "the consumer is being closed")
        finally:
            self._is_ending = True
            self._participant.to_coordinator.wake()
            self._client.close()
            last_words = Deadline.after_ms(_LAST_WORDS_MS)
            while self._is_talking and not last_words.expired:
                await self._wait_for_news(last_words)
            self._participant.to_consumer.close()

    @property
    def _is_talking(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    async def _wait_for_news(self, deadline: Deadline) -> None:
        """Wait for a word of the thread. It says one when it ends, too."""
        news = self._participant.to_consumer
        await wait_for((news,), deadline)
        news.clear()

    def _start(self) -> None:
        if self._thread is None:
            name = f"group {self._participant.config.group_id}"
            self._thread = threading.Thread(
                target=copy_context().run, args=[self._run], name=name, daemon=True
            )
            self._thread.start()

    # -- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._client.run(self._converse())
        finally:
            self._participant.to_coordinator.close()
            self._participant.to_consumer.wake()

    async def _converse(self) -> None:
        while not self._is_ending:
            self._asked = None
            try:
                await self._participant.go_on(self._ask)
            except ClosedError:
                return
            except Exception as error:  # An assignor may raise anything.
                if isinstance(error, KafkaError):
                    self._client.recover(error)
                self._participant.failed(self._asked, error)

    async def _ask(
        self,
        request: Request[R],
        deadline: Deadline,
        check: Callable[[R], None],
        *,
        is_held: bool = False,
    ) -> R:
        self._asked = request
        began_seconds = time.monotonic()
        error: Exception | None = None
        try:
            answer = await self._answer_to(request, deadline, is_held=is_held)
            check(answer)
            return answer
        except Exception as found:
            error = found
            raise
        finally:
            if not isinstance(error, ClosedError | LeftError):
                took_ms = (time.monotonic() - began_seconds) * 1000
                self._hooks.on_request(request, took_ms, error)

    async def _answer_to(self, request: Request[R], deadline: Deadline, *, is_held: bool) -> R:
        """Send a request, and wait for its answer until nobody wants it any more.

        If the coordinator is silent and the group has another one by now, give the request up.
        """
        coordinator = await self._client.coordinator(self._key, deadline)
        await self._client.wait_out_throttle(coordinator.address, deadline)
        asked = self._client.ask(request, coordinator, deadline, is_held=is_held)
        wakeup = self._participant.to_coordinator
        look_ms = _HELD_LOOK_MS if is_held else LONGEST_SILENCE_MS
        look_at = Deadline.after_ms(look_ms)
        while not self._is_ending and not self._participant.has_moved_on:
            if asked.is_over():
                return asked.answer()
            await wait_for((asked, wakeup), Deadline.first(look_at, asked.deadline))
            wakeup.clear()
            if look_at.expired:
                look_at = Deadline.after_ms(look_ms)
                is_still = partial(self._client.still_coordinates, coordinator, self._key)
                if asked.is_silent and not await is_still():
                    asked.give_up("the group has another coordinator by now, so this one is left")
        asked.abandon()
        raise LeftError


def new_membership(
    client: KafkaClient,
    config: GroupConfig,
    listener: RebalanceListener,
    assignors: Sequence[Assignor] = (),
    hooks: Hooks | None = None,
) -> Membership:
    """Create a member for the protocol in `config`. `assignors` replace the configured ones.

    Raises `ConfigurationError` for an unknown assignor.
    """
    if config.group_protocol is GroupProtocol.CONSUMER:
        return consumer_membership(client, config, listener, hooks)
    assignors = assignors or assignors_named(config.partition_assignment_strategy)
    return classic_membership(client, config, assignors, listener, hooks)


def classic_membership(
    client: KafkaClient,
    config: GroupConfig,
    assignors: Sequence[Assignor],
    listener: RebalanceListener,
    hooks: Hooks | None = None,
) -> Membership:
    """Create a member of the classic protocol (`group.protocol=classic`)."""
    topics_of = partial(partitions_to_assign, client)
    participant = ClassicParticipant(
        config,
        assignors,
        listener,
        topics_of,
        _retry_of(client),
        metadata_max_age_ms=client.config.metadata_max_age_ms,
    )
    return Membership(client, participant, hooks)


def consumer_membership(
    client: KafkaClient,
    config: GroupConfig,
    listener: RebalanceListener,
    hooks: Hooks | None = None,
) -> Membership:
    """Create a member of KIP-848's protocol (`group.protocol=consumer`), from Kafka 4.0 on."""
    names_of = partial(topic_names, client)
    participant = ConsumerParticipant(config, listener, names_of, _retry_of(client))
    return Membership(client, participant, hooks)


def _retry_of(client: KafkaClient) -> Retry:
    return Retry(client.config.retry_backoff_ms, client.config.retry_backoff_max_ms)
