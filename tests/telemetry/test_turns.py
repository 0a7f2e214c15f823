"""When a client asks and pushes, by the answers of brokers, on a test's own clock."""

import uuid
from collections.abc import Callable
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from spark_kafka_source.client import Broker
from spark_kafka_source.errors import (
    ConnectionFailedError,
    KafkaError,
    UnsupportedVersionError,
    error_named,
)
from spark_kafka_source.net import Address, Conversations, Deadline, run
from spark_kafka_source.protocol import Request, Response
from spark_kafka_source.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from spark_kafka_source.records import Codec
from spark_kafka_source.telemetry import Figures, Telemetry
from spark_kafka_source.telemetry.subscription import USUAL_INTERVAL_MS
from tests.client.clock import Clock, deadlines_by
from tests.telemetry.payloads import values

ID = uuid.UUID(int=7)
USUAL_SECONDS = USUAL_INTERVAL_MS / 1000
ASK, PUSH = GetTelemetrySubscriptionsRequest, PushTelemetryRequest
BROKERS = [Broker(each, Address("host", each)) for each in range(3)]
LOST = ConnectionFailedError("gone")
Answer = Response | KafkaError | Callable[[Request[Any]], Response]


def subscription(**more: Any) -> GetTelemetrySubscriptionsResponse:
    given: dict[str, Any] = {
        "client_instance_id": ID,
        "subscription_id": 3,
        "push_interval_ms": 60_000,
        "telemetry_max_bytes": 1 << 20,
        "requested_metrics": ["*"],
    }
    return GetTelemetrySubscriptionsResponse(**given | more)


def refused(name: str) -> GetTelemetrySubscriptionsResponse:
    return subscription(error_code=error_named(name).code)


def refused_push(name: str) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error_named(name).code)


class Client:
    """A client whose brokers answer at once, and its telemetry."""

    def __init__(self, clock: Clock, *answers: Answer, connected: int = 1) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.sent: list[tuple[float, Request[Any]]] = []
        self.asked: list[Broker] = []
        self.connected = {each.address for each in BROKERS[:connected]}
        self.closed = False
        self.cluster = SimpleNamespace(brokers={each.node_id: each for each in BROKERS})
        has = self.connected.__contains__
        self.connections = SimpleNamespace(has=has, is_open=has)
        self.history = SimpleNamespace(best_first=list)
        connection = SimpleNamespace(request_timeout_ms=30_000)
        self.config = SimpleNamespace(connection=connection)
        self.conversations = Conversations()
        given: Any = self
        figures: Figures = {"o.total": lambda: [({}, 1.0)]}
        self.telemetry = Telemetry(given, figures, dict, self.conversations)
        self.telemetry.attend()

    async def send(self, request: Request[Any], broker: Broker, _: Deadline) -> Response:
        self.sent.append((self._clock.now_seconds, request))
        self.asked.append(broker)
        answer = self._answers.pop(0) if self._answers else LOST
        if isinstance(answer, KafkaError):
            raise answer
        return answer(request) if callable(answer) else answer

    def go_on(self, turns: int = 1) -> None:
        """Let the time pass until the next turn, so many times."""
        for _ in range(turns):
            until = self.conversations.next_wait().until
            if until.at_seconds == 0:  # There was news.
                until = self.conversations.next_wait().until
            assert until.at_seconds < float("inf")
            self._clock.now_seconds = max(until.at_seconds, self._clock.now_seconds)
            self.conversations.step()

    @property
    def kinds(self) -> list[type[Request[Any]]]:
        return [type(request) for _, request in self.sent]

    @property
    def pauses(self) -> list[float]:
        moments = [at for at, _ in self.sent]
        return [after - at for at, after in pairwise(moments)]

    @property
    def is_over(self) -> bool:
        return self.conversations.is_idle


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    deadlines_by(clock, monkeypatch)
    return clock


def test_the_first_push_is_spread_and_the_next_ones_keep_the_interval(clock: Clock) -> None:
    firsts = []
    for _ in range(100):
        client = Client(clock, subscription(), *[PushTelemetryResponse()] * 3)
        client.go_on(3)
        assert client.kinds == [ASK, PUSH, PUSH, PUSH]
        assert client.pauses[1:] == pytest.approx([60, 60])
        firsts.append(client.pauses[0])
    assert 30 <= min(firsts) < 45
    assert 75 < max(firsts) <= 90


def test_a_push_has_the_id_and_the_subscription(clock: Clock) -> None:
    client = Client(clock, subscription(accepted_compression_types=[4]), PushTelemetryResponse())
    client.go_on()
    request: Any = client.sent[-1][1]
    assert (request.client_instance_id, request.subscription_id) == (ID, 3)
    assert not request.terminating
    assert client.telemetry.client_instance_id == ID


def test_without_wanted_metrics_the_client_asks_again_with_its_id(clock: Clock) -> None:
    other = subscription(client_instance_id=uuid.UUID(int=9), requested_metrics=[])
    client = Client(clock, subscription(requested_metrics=[]), other, subscription())
    client.go_on(2)
    assert client.kinds == [ASK] * 3
    assert client.pauses == pytest.approx([60, 60])
    ids = [request.client_instance_id.int for _, request in client.sent]  # type: ignore[attr-defined]
    assert ids == [0, 7, 7], "the first id stays"


@pytest.mark.parametrize("name", ["UNKNOWN_SUBSCRIPTION_ID", "UNSUPPORTED_COMPRESSION_TYPE"])
def test_a_push_for_another_subscription_is_followed_by_a_question_at_once(
    clock: Clock, name: str
) -> None:
    client = Client(clock, *[subscription(), refused_push(name)] * 5)
    client.go_on(4)
    assert client.kinds == [*([ASK, PUSH] * 4), ASK]
    assert client.pauses[1::2] == [0] * 4
    assert min(client.pauses[::2]) >= 30, "an endless circle waits for its interval"


def test_a_codec_that_was_refused_is_not_used_again(clock: Clock) -> None:
    accepting = subscription(accepted_compression_types=[4, 1])
    client = Client(
        clock,
        accepting,
        refused_push("UNSUPPORTED_COMPRESSION_TYPE"),
        accepting,
        PushTelemetryResponse(),
    )
    codecs = []
    for _ in range(2):
        assert client.telemetry._subscription is not None
        codecs.append(client.telemetry._subscription.codec)
        client.go_on()
    assert codecs == [Codec.ZSTD, Codec.GZIP]


@pytest.mark.parametrize("name", ["TELEMETRY_TOO_LARGE", "THROTTLING_QUOTA_EXCEEDED"])
def test_a_push_that_comes_too_soon_waits_for_the_interval(clock: Clock, name: str) -> None:
    client = Client(clock, subscription(), refused_push(name), subscription())
    client.go_on(2)
    assert client.kinds == [ASK, PUSH, ASK]
    assert client.pauses[1] == pytest.approx(60)


@pytest.mark.parametrize(
    "answer",
    [
        refused("UNKNOWN_SUBSCRIPTION_ID"),
        refused("THROTTLING_QUOTA_EXCEEDED"),
        refused("UNSUPPORTED_VERSION"),
        UnsupportedVersionError("no such API"),
    ],
)
def test_a_question_that_is_refused_is_asked_again_after_minutes(
    clock: Clock, answer: Answer
) -> None:
    client = Client(clock, answer, answer)
    client.go_on(1)
    assert client.pauses == pytest.approx([USUAL_SECONDS])


@pytest.mark.parametrize("name", ["INVALID_REQUEST", "INVALID_RECORD", "UNLISTED"])
def test_a_refusal_that_would_come_again_ends_the_pushes_with_a_warning(
    clock: Clock, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    code = 9_999 if name == "UNLISTED" else error_named(name).code
    client = Client(clock, subscription(), PushTelemetryResponse(error_code=code))
    client.go_on(1)
    assert client.is_over
    (said,) = [each.message for each in caplog.records]
    assert "none are pushed any more" in said
    run(client.telemetry.end(Deadline.after_ms(1_000)))
    assert client.kinds == [ASK, PUSH]


def test_lost_connections_are_followed_by_longer_and_longer_pauses(clock: Clock) -> None:
    client = Client(clock, *[LOST] * 20)
    client.go_on(12)
    assert client.pauses[:4] == pytest.approx([1, 2, 4, 8])
    assert max(client.pauses) == pytest.approx(USUAL_SECONDS)


def test_an_answer_without_an_id_is_no_answer(clock: Clock) -> None:
    client = Client(clock, subscription(client_instance_id=uuid.UUID(int=0)), subscription())
    assert client.telemetry.client_instance_id is None
    client.go_on()
    assert client.telemetry.client_instance_id == ID


def test_a_fault_in_a_metric_ends_the_pushes_and_nothing_else(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(clock, subscription())
    client.telemetry._payloads.figures = {"o.total": lambda: [({}, 1 / 0)]}
    client.go_on()
    assert client.is_over
    assert "No metrics are pushed" in caplog.text
    run(client.telemetry.end(Deadline.after_ms(1_000)))


def test_the_client_waits_until_it_is_connected_and_stays_with_its_broker(clock: Clock) -> None:
    client = Client(clock, subscription(), *[PushTelemetryResponse()] * 9, connected=0)
    assert client.sent == []
    for each in BROKERS[2:]:
        client.connected.add(each.address)
    client.conversations.step()
    client.connected |= {each.address for each in BROKERS}
    client.go_on(5)
    assert client.asked == [BROKERS[2]] * 6


def test_a_client_whose_first_request_failed_waits_for_no_other_connection(clock: Clock) -> None:
    """The failure closed its connection, and the client may need no other for its own work."""
    client = Client(clock, LOST, subscription())
    client.connected.clear()
    client.go_on()
    assert client.telemetry.client_instance_id == ID


def test_a_client_that_wants_its_id_does_not_wait_until_it_is_connected(clock: Clock) -> None:
    client = Client(clock, subscription(), connected=0)
    client.telemetry.ask_for_id()
    client.conversations.step()
    assert client.telemetry.known_id(0) == ID


def test_a_wanted_id_is_asked_for_at_once_after_a_failure(clock: Clock) -> None:
    client = Client(clock, UnsupportedVersionError("no such API"), subscription())
    with pytest.raises(UnsupportedVersionError, match="no such API"):
        client.telemetry.known_id(0)
    client.telemetry.ask_for_id()
    assert not client.telemetry.settled.is_set()
    client.conversations.step()
    assert client.telemetry.settled.is_set()
    assert client.telemetry.known_id(0) == ID


def test_the_last_push_is_terminating(clock: Clock) -> None:
    client = Client(clock, subscription(), PushTelemetryResponse())
    run(client.telemetry.end(Deadline.after_ms(1_000)))
    request: Any = client.sent[-1][1]
    assert request.terminating
    client.conversations.step()
    assert client.is_over


@pytest.mark.parametrize("answer", [subscription(requested_metrics=[]), LOST])
def test_there_is_no_last_push_without_a_subscription(clock: Clock, answer: Answer) -> None:
    client = Client(clock, answer)
    run(client.telemetry.end(Deadline.after_ms(1_000)))
    assert client.kinds == [ASK]


def test_there_is_no_last_push_without_time(clock: Clock) -> None:
    client = Client(clock, subscription())
    run(client.telemetry.end(Deadline.after_ms(0)))
    assert client.kinds == [ASK]


def test_deltas_add_up_also_if_pushes_are_refused_or_lost(clock: Clock) -> None:
    deltas = subscription(delta_temporality=True)
    late, done = refused_push("THROTTLING_QUOTA_EXCEEDED"), PushTelemetryResponse()
    client = Client(clock, deltas, done, late, deltas, LOST, deltas, done, done)
    totals = count(1)
    client.telemetry._payloads.figures = {"o.total": lambda: [({}, float(next(totals)))]}
    client.go_on(7)
    told = [values(each.metrics)["o.total"] for _, each in client.sent if isinstance(each, PUSH)]
    assert told == [1, 1, 2, 3, 1]
    assert client.kinds == [ASK, PUSH, PUSH, ASK, PUSH, ASK, PUSH, PUSH]


def test_a_payload_that_does_not_get_smaller_is_not_compressed(clock: Clock) -> None:
    client = Client(clock, subscription(accepted_compression_types=[1]), PushTelemetryResponse())
    client.go_on()
    request: Any = client.sent[-1][1]
    assert request.compression_type == 0
    assert values(request.metrics) == {"o.total": 1}
