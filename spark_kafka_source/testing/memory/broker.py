"""The in-memory broker: nodes on loopback sockets, one thread, and methods to control both."""

import asyncio
import contextlib
import ssl
import threading
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.errors import ErrorCode
from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.net import Address, ConnectionSettings
from spark_kafka_source.protocol import Request, Response, Versions
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from spark_kafka_source.testing.memory.answers import Action, Answer, FixedAnswer, Hold, Raw
from spark_kafka_source.testing.memory.cluster import HOST, MemoryCluster
from spark_kafka_source.testing.memory.consumer_coordinator import ConsumerGroup
from spark_kafka_source.testing.memory.coordinator import Handled, MemoryGroup
from spark_kafka_source.testing.memory.handlers import HANDLERS, fetch_context, fetch_once, fetched
from spark_kafka_source.testing.memory.log import PartitionLog
from spark_kafka_source.testing.memory.node import Node
from spark_kafka_source.topic_partition import TopicPartition

ONE_TRY: dict[str, Any] = {"retry_backoff_ms": 3_600_000, "retry_backoff_max_ms": 3_600_000}
"""Values for `MemoryBroker.config`: the pauses are so long that nothing is tried twice."""

T = TypeVar("T")
Q = TypeVar("Q", bound=Request[Any])

_PATIENCE_SECONDS = 30


def _fixed(answer: object) -> Response | Raw | Action:
    assert isinstance(answer, Response | Raw | Action)
    return answer


async def _awaited(handled: Handled) -> Response | Action:
    return handled if isinstance(handled, Response | Action) else await handled


def _is_worth_telling(data: PartitionData) -> bool:
    return bool(data.error_code or data.records or data.preferred_read_replica >= 0)


class Seen(NamedTuple):
    """A request that a node received."""

    node_id: int
    version: int
    request: Request[Any]


@dataclass
class Control:
    """A test's answer to the next `times` requests of a type, or to every request."""

    request_type: type[Request[Any]]
    answer: Answer
    times: int | None
    node_id: int | None


class MemoryBroker:
    """A cluster of `nodes` nodes, with ids from `first_node_id`. Use it as a context manager.

    The end of the context raises a failure of the broker itself, or adds it as a note to the error
    that ends the context. Without `keeps_requests`, `seen`
    stays empty: a cluster that runs for long does not grow by its requests.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        versions: dict[int, Versions] | None = None,
        tls: ssl.SSLContext | None = None,
        first_node_id: int = 0,
        keeps_requests: bool = True,
    ) -> None:
        self.cluster = MemoryCluster(nodes, first_node_id)
        self.cluster.versions.update(versions or {})
        self.seen: list[Seen] = []
        self._keeps_requests = keeps_requests
        self.held_step_seconds: float | None = None
        """Most seconds between tries to answer an empty fetch, up to `max_wait_ms`. None: one try.

        Any other request is followed by a try.
        """
        self._nodes = {
            node_id: Node(node_id, self.cluster, self._respond, tls)
            for node_id in range(first_node_id, first_node_id + nodes)
        }
        self._controls: list[Control] = []
        self._process = OwnProcess("MemoryKafka")
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._stirred = asyncio.Event()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="memory-broker", daemon=True
        )

    def __enter__(self) -> "MemoryBroker":
        self._thread.start()
        for node_id in self._nodes:
            self.start(node_id)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for node in self._nodes.values():
            self._run(node.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        failures = [node.error for node in self._nodes.values() if node.error is not None]
        if error is not None:  # The test's own error comes first.
            for failure in failures:
                error.add_note(f"A broker in memory failed, too: {failure!r}")
        elif failures:
            raise failures[0]

    # -- what a test sets --------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, *, topic_id: uuid.UUID | None = None
    ) -> list[PartitionLog]:
        """Create a topic. Return its partitions' logs. The leaders are spread over all nodes."""
        return self.cluster.create_topic(name, partitions, topic_id)

    def delete_topic(self, name: str) -> None:
        """Delete the topic, its settings, and the groups' offsets of it."""
        self.cluster.delete_topic(name)

    def move_leader(self, topic_partition: TopicPartition, node_id: int) -> None:
        """Make another node the leader, in a new leader epoch."""
        log = self.cluster.topics[topic_partition.topic].logs[topic_partition.partition]
        log.leader_epoch += 1
        log.leader_id = node_id

    def hand_over(self, node_id: int) -> None:
        """Spread the partitions of a node over the running nodes, if there are any."""
        others = sorted(self.cluster.ports)
        for topic in self.cluster.topics.values() if others else ():
            for number, log in enumerate(topic.logs):
                if log.leader_id == node_id:
                    where = TopicPartition(topic.name, number)
                    self.move_leader(where, others[number % len(others)])

    def control(
        self,
        request_type: type[Request[Any]],
        answer: Answer,
        *,
        times: int | None = 1,
        node_id: int | None = None,
    ) -> None:
        """Answer the next `times` requests of a type (None: all). The first control wins."""
        self._controls.append(Control(request_type, answer, times, node_id))

    def hold(
        self,
        request_type: type[Request[Any]],
        *,
        node_id: int | None = None,
        then: Answer = Action.HANDLE,
    ) -> Hold:
        """Delay the answer to the next request of a type until `release` is called."""
        hold = Hold(self._loop, then)
        self.control(request_type, hold, node_id=node_id)
        return hold

    def forget(self) -> None:
        """End all controls, and forget the requests so far."""
        self._controls.clear()
        self.seen.clear()

    def start(self, node_id: int) -> None:
        """Start the node, on its former port. It has lost its fetch sessions.

        It knows only the last batch of each producer.
        """
        self.cluster.fetch_sessions.pop(node_id, None)
        for log in self.cluster.logs_of(node_id):
            for producer in log.producers.values():
                producer.reload()
        self.cluster.ports[node_id] = self._run(self._nodes[node_id].start())

    def stop(self, node_id: int) -> None:
        """Stop the node: it closes its port and its connections, and clients get no notice."""
        self._run(self._nodes[node_id].stop())
        del self.cluster.ports[node_id]

    def hang_up(self, node_id: int) -> None:
        """Close all connections of the node, as a broker does with idle ones."""
        self._run(self._nodes[node_id].hang_up())

    def pause(self, node_id: int) -> None:
        """Answer nothing until `resume`. Connections stay open, and new ones are accepted."""
        self._run(self._nodes[node_id].pause())

    def resume(self, node_id: int) -> None:
        """Go on answering, first the requests that came meanwhile."""
        self._run(self._nodes[node_id].resume())

    def call(self, change: Callable[[], T]) -> T:
        """Call a function between two requests, then try to answer the fetches that wait."""

        async def called() -> T:
            result = change()
            self._stir()
            return result

        return self._run(called())

    def drop_member(self, group_id: str, member_id: str) -> None:
        """End the session of a classic member."""

        async def drop() -> None:
            self.group(group_id).drop(member_id)

        self._run(drop())

    def drop_consumer(self, group_id: str, member_id: str) -> None:
        """End the session of a KIP-848 member."""

        async def drop() -> None:
            self.consumer_group(group_id).drop(self.cluster, member_id)

        self._run(drop())

    def gather(self, group_id: str) -> None:
        """Make all members of the group join again."""

        async def gather() -> None:
            self.group(group_id).gather()

        self._run(gather())

    # -- what a test reads -------------------------------------------------------------------------

    def address(self, node_id: int = 0) -> Address:
        """Return the address of a node. Restarts do not change it."""
        return Address(HOST, self._nodes[node_id].port)

    def config(self, *, settings: ConnectionSettings | None = None, **values: Any) -> ClientConfig:
        """Return a client's configuration: bootstrap is node 0, without pauses between tries."""
        known: dict[str, Any] = {"retry_backoff_ms": 0, "bootstrap_servers": (self.address(),)}
        return ClientConfig(connection=settings or ConnectionSettings(), **known | values)

    def requests(self, request_type: type[Q]) -> list[Q]:
        """Return all requests of a type so far, in order."""
        return [each.request for each in self.seen if isinstance(each.request, request_type)]

    def wait_for(self, request_type: type[Request[Any]], count: int = 1) -> None:
        """Wait until `count` requests of a type have come in and have their answers, if any."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: len(self.requests(request_type)) >= count, _PATIENCE_SECONDS
            )
        assert done, f"{count} {request_type.__name__} were to come in"
        # The loop makes a request's answer in the step that records the request.
        self._run(asyncio.sleep(0))

    def group(self, group_id: str) -> MemoryGroup:
        """Return a classic group. It exists once a member has joined."""
        group: MemoryGroup = self.cluster.groups[group_id]
        return group

    def consumer_group(self, group_id: str) -> ConsumerGroup:
        """Return a KIP-848 group. It exists once a member has joined."""
        group: ConsumerGroup = self.cluster.consumer_groups[group_id]
        return group

    def accepted(self, node_id: int = 0) -> int:
        """Return how many connections a node has accepted."""
        return self._nodes[node_id].accepted

    # -- what runs in the broker's thread ----------------------------------------------------------

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if not self._process.is_here:  # The child of a fork has no thread that would do it.
            coroutine.close()
            self._process.check()
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(_PATIENCE_SECONDS)

    async def _respond(
        self, node_id: int, request: Request[Any], version: int
    ) -> Response | Raw | Action:
        if self._keeps_requests:
            with self._changed:
                self.seen.append(Seen(node_id, version, request))
                self._changed.notify_all()
        answer = await self._controlled(node_id, request)
        if isinstance(request, SaslHandshakeRequest | SaslAuthenticateRequest):
            return Action.AUTHENTICATE if answer is Action.HANDLE else _fixed(answer)
        handle = HANDLERS[type(request)]
        if isinstance(answer, ErrorCode):
            refusing = replace(self.cluster, refusal=answer.code)
            return await _awaited(handle(refusing, node_id, request, version))
        if answer is Action.LOSE:
            await _awaited(handle(self.cluster, node_id, request, version))
            return Action.CLOSE
        if answer is Action.HANDLE:
            if self.held_step_seconds and isinstance(request, FetchRequest):
                answer = await self._held(node_id, request, version, self.held_step_seconds)
            else:
                answer = await _awaited(handle(self.cluster, node_id, request, version))
                self._stir()
            if type(request) in self.cluster.throttle_time_ms:
                throttled: Any = answer
                throttled.throttle_time_ms = self.cluster.throttle_time_ms[type(request)]
        return answer

    def _stir(self) -> None:
        """Wake the fetches that wait for news."""
        self._stirred.set()
        self._stirred = asyncio.Event()

    async def _held(
        self, node_id: int, request: FetchRequest, version: int, step_seconds: float
    ) -> FetchResponse:
        """Return the answer once it has something to tell, or else after `max_wait_ms`."""
        until_seconds = self._loop.time() + request.max_wait_ms / 1000
        context = fetch_context(self.cluster, node_id, request, version)
        while True:
            stirred = self._stirred
            found = fetch_once(self.cluster, node_id, request, context)
            over = self._loop.time() >= until_seconds or not found
            if over or any(map(_is_worth_telling, found.values())):
                return fetched(context, found)
            # Not `asyncio.wait_for`: before Python 3.12 it can swallow the end of the connection.
            left_seconds = until_seconds - self._loop.time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(step_seconds, left_seconds)):
                    await stirred.wait()

    async def _controlled(self, node_id: int, request: Request[Any]) -> FixedAnswer:
        answer = self._control(node_id, request)
        while callable(answer) or isinstance(answer, Hold):
            if isinstance(answer, Hold):
                await answer.passed()
                answer = answer.then
            else:
                answer = answer(request)
        return answer

    def _control(self, node_id: int, request: Request[Any]) -> Answer:
        for control in self._controls:
            if control.request_type is not type(request) or control.times == 0:
                continue
            if control.node_id in (None, node_id):
                control.times = None if control.times is None else control.times - 1
                return control.answer
        return Action.HANDLE
