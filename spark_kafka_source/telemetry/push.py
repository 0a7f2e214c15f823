"""The conversation that asks a broker which metrics it wants, and pushes them (KIP-714).

It asks once, and pushes at each interval that the broker sets. When a broker refuses a push, the
client asks again, as the broker may want other metrics by now.
"""

import threading
import uuid
from collections.abc import Callable
from typing import TypeVar

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.client import Broker, KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.errors import (
    BrokerError,
    ClosedError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net import Conversations, Deadline, Running, wait_for
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from spark_kafka_source.protocol.wire import ZERO_UUID
from spark_kafka_source.records import Codec, Compression
from spark_kafka_source.telemetry.figures import Figures, Tags
from spark_kafka_source.telemetry.payloads import Payload, Payloads
from spark_kafka_source.telemetry.subscription import USUAL_INTERVAL_MS, Subscription

R = TypeVar("R", bound=Response)

logger = logger_of(__name__)

_LAST_PUSH_MS = 500
"""How long the close of a client waits for its last push."""

_ASK, _PUSH = "GetTelemetrySubscriptions", "PushTelemetry"
_ASK_AGAIN = frozenset(
    {error_named("UNKNOWN_SUBSCRIPTION_ID"), error_named("UNSUPPORTED_COMPRESSION_TYPE")}
)
"""Errors of a push that another subscription heals."""
_ASK_LATER = frozenset(
    {error_named("TELEMETRY_TOO_LARGE"), error_named("THROTTLING_QUOTA_EXCEEDED")}
)
_NO_TELEMETRY = error_named("UNSUPPORTED_VERSION")
_USUAL_SECONDS = USUAL_INTERVAL_MS / 1000
_EARLIEST, _LATEST = 0.5, 1.5
"""The first push comes at any moment between these parts of the interval. Clients that began
together do not push together."""
_FOR_EVER = Deadline(float("inf"), 0)


class Telemetry:
    """The pushes of one client's metrics. They never raise.

    They go on in the thread of `client`, beside its other conversations. Another thread may call
    `ask_for_id`, and wait for `settled`.
    """

    def __init__(
        self,
        client: KafkaClient,
        figures: Figures,
        labels: Callable[[], Tags],
        conversations: Conversations,
    ) -> None:
        """Create it. `labels` returns the present labels of the client, such as its group."""
        self._client = client
        self._conversations = conversations
        self._payloads = Payloads(figures)
        self._labels = labels
        self._broker: Broker | None = None
        self._subscription: Subscription | None = None
        self._interval_seconds = _USUAL_SECONDS
        self._refused_codecs: set[Codec] = set()
        self._failures = 0
        self._is_id_wanted = False
        self._is_hurried = False
        self._is_asking = self._has_asked = False
        self._is_stopped = False
        self.client_instance_id: uuid.UUID | None = None
        """The id that a broker gave this client; None if none has yet."""
        self.error: KafkaError | None = None
        """The last error, until a success."""
        self.settled = threading.Event()
        """Set once there is an id, or no hope for one soon."""
        self._running: Running[None] | None = None

    def attend(self) -> None:
        """Begin, or begin again after a Ctrl-C."""
        if not self._is_stopped and (self._running is None or self._running.is_done):
            self._running = self._conversations.begin(self._run())

    # -- the client instance id --------------------------------------------------------------------

    def ask_for_id(self) -> None:
        """Ask for the id now, also if no broker is connected yet."""
        self.settled.clear()  # First: the client's thread may find the id at this moment.
        if self.client_instance_id is not None or self._is_stopped:
            self.settled.set()
        else:
            self._is_id_wanted = self._is_hurried = True

    def known_id(self, timeout_ms: int) -> uuid.UUID:
        """Return the id, or raise why there is none, after a wait of so many milliseconds."""
        if self.client_instance_id is not None:
            return self.client_instance_id
        if self._is_stopped and self.error is None:
            raise ClosedError("the client was closed before a broker gave it an id")
        if _has_no_telemetry(self.error) or self._is_stopped:
            raise UnsupportedVersionError(f"No broker gave a client instance id: {self.error}")
        text = f"No broker gave a client instance id within {timeout_ms} ms"
        raise KafkaTimeoutError(f"{text}; the last error: {self.error}" if self.error else text)

    # -- the conversation --------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while not self._is_stopped:
                pause_seconds = await self._turn()
                await self._pause(pause_seconds)
        except Exception:
            if not self._client.closed:
                logger.exception("No metrics are pushed to brokers any more")
            self._is_stopped = True
            self.settled.set()

    async def _pause(self, seconds: float) -> None:
        until = Deadline.after_seconds(seconds)
        while not until.expired and not self._is_hurried:
            await wait_for((), until)

    async def _turn(self) -> float:
        """Ask or push, once. Return how many seconds to wait before the next time."""
        self._is_hurried = False
        try:
            broker = await self._connected()
            if self._subscription is None:
                pause_seconds = await self._ask(broker)
            else:
                pause_seconds = await self._push(broker, self._subscription)
        except KafkaError as error:
            if self._client.closed:
                raise
            logger.debug("Metrics for brokers: %s", error)
            pause_seconds = self._after(error)
            self.error, self._subscription, self._broker = error, None, None
            if self._is_stopped or _has_no_telemetry(error):
                self.settled.set()
            return pause_seconds
        self.error, self._failures = None, 0
        return pause_seconds

    async def _ask(self, broker: Broker) -> float:
        known_id = self.client_instance_id
        request = GetTelemetrySubscriptionsRequest(client_instance_id=known_id or ZERO_UUID)
        answer = await self._sent(request, broker)
        if answer.error_code:
            raise refusal(answer.error_code, _ASK)
        self.client_instance_id = known_id or _checked(answer.client_instance_id)
        self._is_hurried = False
        self.settled.set()
        subscription = Subscription.of(answer, self._payloads.figures, self._refused_codecs)
        self._interval_seconds = subscription.push_interval_ms / 1000
        if not subscription.names:
            return self._interval_seconds
        self._subscription = subscription
        return self._interval_seconds * CHANCE.uniform(_EARLIEST, _LATEST)

    async def _push(self, broker: Broker, subscription: Subscription) -> float:
        payload = self._payloads.payload(subscription, self._labels())
        request = self._request(subscription, payload)
        answer = await self._sent(request, broker)
        if answer.error_code:
            raise refusal(answer.error_code, _PUSH)
        self._payloads.accepted(payload)
        return self._interval_seconds

    async def _sent(self, request: Request[R], broker: Broker) -> R:
        self._is_asking = self._has_asked = True
        try:
            return await self._client.send(request, broker, self._deadline())
        finally:
            self._is_asking = False

    def _request(
        self, subscription: Subscription, payload: Payload, *, terminating: bool = False
    ) -> PushTelemetryRequest:
        codec, metrics = subscription.codec, payload.data
        smaller = bytes(Compression(codec).compress(metrics))
        if len(smaller) < len(metrics):
            metrics = smaller
        else:
            codec = Codec.NONE
        return PushTelemetryRequest(
            client_instance_id=self.client_instance_id or ZERO_UUID,
            subscription_id=subscription.subscription_id,
            terminating=terminating,
            compression_type=codec,
            metrics=metrics,
        )

    def _deadline(self) -> Deadline:
        return Deadline.after_ms(self._client.config.connection.request_timeout_ms)

    # -- errors ------------------------------------------------------------------------------------

    def _after(self, error: KafkaError) -> float:
        """Return how many seconds to wait after an error. Stop after one that would come again."""
        if isinstance(error, BrokerError):
            return self._after_refusal(error)
        if isinstance(error, UnsupportedVersionError) or not error.has_remedy:
            return _USUAL_SECONDS  # Another broker may have it by then.
        self._failures += 1
        return min(2.0 ** min(self._failures - 1, 20), _USUAL_SECONDS)

    def _after_refusal(self, error: BrokerError) -> float:
        if error.error in _ASK_AGAIN and self._subscription is not None:
            if error.error.name == "UNSUPPORTED_COMPRESSION_TYPE":
                self._refused_codecs.add(self._subscription.codec)
            return 0.0  # The next push waits for its interval in any case.
        if error.error in _ASK_AGAIN | _ASK_LATER or error.has_remedy:
            return self._interval_seconds
        if error.error == _NO_TELEMETRY:
            return _USUAL_SECONDS
        logger.warning("A broker refuses metrics, so none are pushed any more: %s", error)
        self._is_stopped = True
        return 0.0

    # -- the broker --------------------------------------------------------------------------------

    async def _connected(self) -> Broker:
        """Return the broker for the next request.

        The first request waits until the client is connected for its own work.
        """
        while True:
            self._broker = self._choice()
            if self._broker is not None:
                return self._broker
            if not self._is_id_wanted:
                await wait_for((), _FOR_EVER)  # Each step of the thread looks again.
                continue
            await self._client.topics([], self._deadline())
            if not self._client.cluster.brokers:
                raise ProtocolError("Metadata: the answer has no brokers")

    def _choice(self) -> Broker | None:
        """Return the broker of the last request while it is connected, as the KIP has it.

        Else any with a connection at rest; without one, any that has not failed lately. Before the
        first contact there is none.
        """
        known, connections = list(self._client.cluster.brokers.values()), self._client.connections
        if self._broker in known and connections.is_open(self._broker.address):
            return self._broker
        connected = [each for each in known if connections.has(each.address)]
        is_begun = self._is_id_wanted or self._has_asked
        by_address = {each.address: each for each in connected or (known if is_begun else ())}
        addresses = list(by_address)
        CHANCE.shuffle(addresses)
        best = next(iter(self._client.history.best_first(addresses)), None)
        return None if best is None else by_address[best]

    # -- the end -----------------------------------------------------------------------------------

    async def end(self, deadline: Deadline | None) -> None:
        """Push a last time, if a broker wants it, and wait up to half a second for the answer.

        The wait ends at the deadline in any case.
        """
        self._is_stopped = True
        self.settled.set()
        until = Deadline.after_ms(_LAST_PUSH_MS)
        until = Deadline.first(until, deadline or until)
        if self._running is not None:
            while self._is_asking and not until.expired:  # It keeps its connection for the last.
                wait = self._running.wait
                await wait_for(wait.sockets, Deadline.first(wait.until, until))
                self._running.go_on()
            self._running.give_up()
        subscription, broker = self._subscription, self._choice()
        if subscription is None or broker is None or until.expired:
            return
        try:
            payload = self._payloads.payload(subscription, self._labels())
            request = self._request(subscription, payload, terminating=True)
            await self._client.send(request, broker, until)
        except KafkaError as error:
            logger.debug("Last metrics for brokers: %s", error)
        except Exception:
            logger.exception("The last metrics were not pushed to a broker")


def _has_no_telemetry(error: KafkaError | None) -> bool:
    is_refused = isinstance(error, BrokerError) and error.error == _NO_TELEMETRY
    return is_refused or isinstance(error, UnsupportedVersionError)


def _checked(client_instance_id: uuid.UUID) -> uuid.UUID:
    if client_instance_id == ZERO_UUID:
        raise ProtocolError(f"{_ASK}: the answer has no client instance id")
    return client_instance_id


async def new_client_instance_id(client: KafkaClient, timeout_ms: int | None) -> uuid.UUID:
    """Ask any broker for a client instance id, for a client that pushes nothing."""

    async def ask(deadline: Deadline) -> uuid.UUID:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
        answer = await client.send_to_any(request, deadline)
        if answer.error_code:
            raise refusal(answer.error_code, _ASK)
        return _checked(answer.client_instance_id)

    return await client.retrying(_ASK, ask, timeout_ms=timeout_ms)
