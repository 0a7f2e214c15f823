"""A consumer's membership in its group: what it owns now, kept up by a thread of its own.

All that goes to the coordinator goes from that thread: finding it, joining, heartbeats. All that a
listener is told, and what an assignor hears of, is said in the thread that polls. The two never
wait for each other, but for a `leave`.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from spark_kafka_source.client import (
    LONGEST_SILENCE_MS,
    Asked,
    Broker,
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
from spark_kafka_source.groups.lookups import partition_racks, topic_names
from spark_kafka_source.groups.member import Member
from spark_kafka_source.groups.participant import Outgoing, Participant, Step
from spark_kafka_source.net import Deadline, Wakeup, readable
from spark_kafka_source.protocol import Request
from spark_kafka_source.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# To have a thread end that was told to, once nobody waits for the coordinator any more.
_LAST_WORDS_SECONDS = 1.0
# A coordinator keeps some answers back on purpose: it is looked for less often meanwhile.
_HELD_LOOK_MS = 3_000


@dataclass(frozen=True, slots=True)
class Hooks:
    """Two functions of the consumer that the membership calls.

    `is_ready`, in the thread that polls: whether the member may take its next step now. Where it
    may not, the next `poll` asks again, and no poll waits. `on_request`, in the other thread: how
    many ms a request to the coordinator took, and the error that it ended with, or None.
    """

    is_ready: Callable[[Step], bool] = lambda _: True
    on_request: Callable[[Request[Any], float, Exception | None], None] = lambda *_: None


class Membership:
    """Belongs to the consumer's thread; only `fileno` may be waited for elsewhere.

    Poll it often, also while the consumer waits for records: `kafka.max.poll.interval.ms` after
    the last `poll` it leaves the group, and what the consumer owned is lost.
    """

    def __init__(
        self, client: KafkaClient, participant: Participant, hooks: Hooks | None = None
    ) -> None:
        """`client` is its own from now on: nobody else may use it, and `close` closes it."""
        self._client = client
        self._participant = participant
        self._key = CoordinatorKey.of_group(participant.config.group_id)
        self._hooks = hooks or Hooks()
        self._thread: threading.Thread | None = None
        self._is_ending = False

    # -- the consumer's side -----------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] = (), regex: str | None = None) -> None:
        """These topics from the next `poll` on, in place of those before.

        With KIP-848 also those that the coordinator finds to match a pattern of RE2's; the classic
        protocol raises `LocalError` for one.
        """
        self._participant.subscribe(topics, regex)

    def poll(self) -> None:
        """Takes what steps can be taken now, and waits for nothing but the listener.

        Call it once `fileno` is readable, and before records are handed out. Raises what the
        listener raises, what an assignor raises, and a `KafkaError` that has no remedy: a
        `BrokerError` such as GROUP_AUTHORIZATION_FAILED, `AuthenticationError`,
        `UnsupportedVersionError`. The next `poll` tries again; FENCED_INSTANCE_ID stays.
        """
        self._start()
        self._participant.begin_poll()
        while (step := self._participant.next_step()) is not None:
            if not self._hooks.is_ready(step):
                return
            step.run()

    def fileno(self) -> int:
        """Readable once there is something to `poll` for; to wait for along with records."""
        return self._participant.to_consumer.fileno()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What this member owns; during `revoked` still, during `assigned` already."""
        return self._participant.assignment

    @property
    def member(self) -> Member | None:
        """What commits carry; None where there is no generation to commit in.

        Then the group rebalances (commit again later), or what was owned is lost already.
        """
        return self._participant.member

    @property
    def state(self) -> Enum:
        """Where it stands, by its protocol."""
        return self._participant.state

    def rejoin(self, reason: str) -> None:
        """Has the group divide the partitions anew, from the next `poll` on (KIP-568)."""
        self._participant.rejoin(reason)

    def leave(self, deadline: Deadline, reason: str = "the consumer unsubscribed") -> None:
        """Gives everything up: `revoked` or `lost`, and the coordinator is told by `deadline`.

        A static member keeps its place. Errors of the coordinator are logged; raises what the
        listener raises. After it one may subscribe again.
        """
        try:
            self._participant.leave(deadline, reason)
        finally:
            changed = self._participant.changed
            with changed:
                changed.wait_for(
                    lambda: self._participant.has_left, timeout=deadline.remaining_seconds()
                )

    def close(self, deadline: Deadline) -> None:
        """Leaves, and ends the thread and its connections, by `deadline` and a second; once."""
        if self._is_ending:
            return
        try:
            self.leave(deadline, "the consumer is being closed")
        finally:
            self._is_ending = True
            self._participant.to_coordinator.wake()
            self._client.close()
            if self._thread is not None:
                self._thread.join(_LAST_WORDS_SECONDS)
            else:
                self._participant.close()

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
            self._converse()
        finally:
            self._participant.close()

    def _converse(self) -> None:
        while not self._is_ending:
            try:
                self._go_on()
            except ClosedError:
                return
            except Exception as error:  # An assignor's, or a bug: not to end in silence.
                logger.exception("Group %r", self._participant.config.group_id)
                self._participant.broke(error)

    def _go_on(self) -> None:
        due = self._participant.next_request()
        if isinstance(due, Outgoing):
            self._ask(due)
        else:
            wakeup = self._participant.to_coordinator
            if readable([wakeup], Deadline.after_ms(int(due * 1000) + 1)):
                wakeup.clear()

    def _ask(self, due: Outgoing) -> None:
        began_seconds = time.monotonic()
        try:
            self._converse_once(due)
            error = None
        except ClosedError:
            raise
        except Exception as found:  # What an assignor raises goes the same way.
            error = found
        took_ms = (time.monotonic() - began_seconds) * 1000
        self._hooks.on_request(due.request, took_ms, error)
        if error is not None:
            if isinstance(error, KafkaError):
                self._client.recover(error)
            self._participant.failed(due.request, error)

    def _converse_once(self, due: Outgoing) -> None:
        coordinator = self._client.coordinator(self._key, due.deadline)
        asked = self._client.ask(due.request, coordinator, due.deadline, is_held=due.is_held)
        if self._is_answered(asked, due, coordinator):
            self._participant.answered(due.request, asked.answer())
        else:
            asked.abandon()

    def _is_answered(self, asked: Asked[Any], due: Outgoing, coordinator: Broker) -> bool:
        """Wait for the answer, unless it is not wanted any more.

        Where the coordinator is silent and the group has another by now, the request is given up.
        """
        wakeup = self._participant.to_coordinator
        look_ms = _HELD_LOOK_MS if due.is_held else LONGEST_SILENCE_MS
        look_at = Deadline.after_ms(look_ms)
        while not self._is_ending and self._participant.wanted(due.request):
            if asked.is_over():
                return True
            waited_for: list[Asked[Any] | Wakeup] = [asked, wakeup]
            if wakeup in readable(waited_for, min(look_at, asked.deadline, key=_at)):
                wakeup.clear()
            if look_at.expired:
                look_at = Deadline.after_ms(look_ms)
                if asked.is_silent and not self._client.still_coordinates(coordinator, self._key):
                    asked.give_up("the group has another coordinator by now, so this one is left")
        return False


def _at(deadline: Deadline) -> float:
    return deadline.at_seconds


def new_membership(
    client: KafkaClient,
    config: GroupConfig,
    listener: RebalanceListener,
    assignors: Sequence[Assignor] = (),
    hooks: Hooks | None = None,
) -> Membership:
    """Create a member by the protocol in `config`. `assignors` replace the configured ones.

    Raises `ConfigurationError` for an assignor that there is not.
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
    """A member by the classic protocol (`group.protocol=classic`)."""
    topics_of = partial(partition_racks, client)
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
    """A member by the protocol of KIP-848 (`group.protocol=consumer`), from Kafka 4.0 on."""
    names_of = partial(topic_names, client)
    participant = ConsumerParticipant(config, listener, names_of, _retry_of(client))
    return Membership(client, participant, hooks)


def _retry_of(client: KafkaClient) -> Retry:
    return Retry(client.config.retry_backoff_ms, client.config.retry_backoff_max_ms)
