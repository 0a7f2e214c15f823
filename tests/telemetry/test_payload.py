"""What a push has in it, as OpenTelemetry's own classes read it."""

import math
import time
import uuid
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
)

from spark_kafka_source.protocol.messages.telemetry import GetTelemetrySubscriptionsResponse
from spark_kafka_source.records import Codec
from spark_kafka_source.telemetry import Figures, otlp
from spark_kafka_source.telemetry.otlp import Temporality
from spark_kafka_source.telemetry.payloads import Payloads
from spark_kafka_source.telemetry.subscription import USUAL_INTERVAL_MS, Subscription
from tests.telemetry.payloads import points, read, tags, values

DOUBLES = st.floats(allow_nan=False)
TIMES = st.integers(min_value=1, max_value=2**64 - 1)
THEIRS = {
    Temporality.DELTA: AGGREGATION_TEMPORALITY_DELTA,
    Temporality.CUMULATIVE: AGGREGATION_TEMPORALITY_CUMULATIVE,
}
TEXTS = st.dictionaries(st.text(), st.text(), max_size=4)


@given(TEXTS, st.text(min_size=1), DOUBLES, TIMES, st.data())
def test_opentelemetry_reads_each_field(
    of_point: dict[str, str], name: str, value: float, at_ns: int, data: st.DataObject
) -> None:
    labels, began_ns = data.draw(TEXTS), data.draw(TIMES)
    temporality = data.draw(st.sampled_from(Temporality))
    of_sum = otlp.sum_of(name, otlp.point(value, {}, at_ns, began_ns), temporality)
    of_gauge = otlp.gauge(f"{name}2", [otlp.point(value, of_point, at_ns)] * 2)
    found_labels, metrics = read(otlp.metrics_data(labels, [of_sum, of_gauge]))
    assert found_labels == labels
    found = metrics[name].sum
    assert found.is_monotonic
    assert found.aggregation_temporality == THEIRS[temporality]
    (point,) = found.data_points
    assert point.start_time_unix_nano == began_ns
    first, second = metrics[f"{name}2"].gauge.data_points
    assert first == second
    assert tags(first) == of_point
    for each in (point, first):
        assert (each.as_double, each.time_unix_nano) == (value, at_ns)


def of_partitions(count: int) -> list[tuple[dict[str, str], float]]:
    return [({"partition": str(each)}, float(each)) for each in range(count)]


class Client:
    """A client with a gauge, a sum and values of partitions, on a clock of its own."""

    def __init__(self) -> None:
        self.now_ns = 1_000
        self.total, self.average, self.partitions = 0.0, 0.0, of_partitions(2)
        figures: Figures = {
            "o.sum.total": lambda: [({}, self.total)],
            "o.gauge.avg": lambda: [({}, self.average)],
            "o.lag": lambda: self.partitions,
        }
        self.collection = Payloads(figures, lambda: self.now_ns)

    def subscription(self, **more: Any) -> Subscription:
        given: dict[str, Any] = {"telemetry_max_bytes": 1 << 20, "requested_metrics": [""]}
        answer = GetTelemetrySubscriptionsResponse(**given | more)
        return Subscription.of(answer, self.collection.figures, ())


def test_only_subscribed_metrics_are_read() -> None:
    read_names: list[str] = []

    def reading(name: str) -> list[tuple[dict[str, str], float]]:
        read_names.append(name)
        return [({}, 1.0)]

    figures: Figures = {name: partial(reading, name) for name in ("a.b", "a.c")}
    answer = GetTelemetrySubscriptionsResponse(telemetry_max_bytes=999, requested_metrics=["a.c"])
    taken = Payloads(figures).payload(Subscription.of(answer, figures, ()), {})
    assert values(taken.data) == {"a.c": 1.0}
    assert read_names == ["a.c"]


def test_a_delta_is_since_the_last_push_that_a_broker_took() -> None:
    client = Client()
    deltas = client.subscription(delta_temporality=True)
    client.total, client.now_ns = 5, 2_000
    client.collection.accepted(client.collection.payload(deltas, {}))
    client.total, client.now_ns = 7, 3_000
    client.collection.payload(deltas, {})  # It is lost.
    client.total, client.now_ns = 8, 4_000
    (point,) = points(read(client.collection.payload(deltas, {}).data)[1]["o.sum.total"])
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (3, 2_000, 4_000)


def test_a_cumulative_sum_is_since_the_client_began_whatever_brokers_had() -> None:
    client = Client()
    client.total, client.now_ns = 5, 2_000
    client.collection.accepted(
        client.collection.payload(client.subscription(delta_temporality=True), {})
    )
    client.now_ns = 3_000
    (point,) = points(
        read(client.collection.payload(client.subscription(), {}).data)[1]["o.sum.total"]
    )
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (5, 1_000, 3_000)


def test_an_unknown_value_is_left_out() -> None:
    client = Client()
    client.average, client.partitions = math.nan, [({"partition": "0"}, math.nan)]
    assert values(client.collection.payload(client.subscription(), {}).data) == {"o.sum.total": 0}


@pytest.mark.parametrize("most_bytes", [-1, 0, 50, 150, 300, 1_000, 5_000, 2**31 - 1])
def test_a_payload_keeps_the_brokers_limit_and_begins_with_the_first_metrics(
    most_bytes: int,
) -> None:
    client = Client()
    client.partitions = of_partitions(50_000)
    subscription = client.subscription(telemetry_max_bytes=most_bytes)
    payload = client.collection.payload(subscription, {"group_id": "g"}).data
    _, found = read(payload)
    if most_bytes >= 50:
        assert len(payload) <= min(most_bytes, 1 << 20)
    names = ["o.sum.total", "o.gauge.avg", "o.lag"]
    assert list(found) == names[: len(found)]
    if most_bytes >= 1_000:
        lags = [point.as_double for point in points(found["o.lag"])]
        assert lags == list(range(len(lags)))
        assert len(payload) > 0.7 * min(most_bytes, 1 << 20), "the room is used"


def test_a_sum_without_room_is_not_taken_for_told() -> None:
    client = Client()
    client.total, client.partitions = 5, []
    narrow = client.subscription(delta_temporality=True, telemetry_max_bytes=10)
    client.collection.accepted(client.collection.payload(narrow, {}))
    wide = client.subscription(delta_temporality=True)
    assert values(client.collection.payload(wide, {}).data)["o.sum.total"] == 5


@pytest.mark.parametrize(
    ("asked_ms", "kept_ms"),
    [
        *((each, USUAL_INTERVAL_MS) for each in (0, -1, -(2**31))),
        *((each, 100) for each in (1, 99, 100)),
        *((each, each) for each in (60_000, 2**31 - 1)),
    ],
)
def test_an_interval_that_kafka_does_not_allow_has_another_in_its_place(
    asked_ms: int, kept_ms: int
) -> None:
    assert Client().subscription(push_interval_ms=asked_ms).push_interval_ms == kept_ms


@pytest.mark.parametrize(
    ("accepted", "codec"),
    [([], Codec.NONE), ([99, -128, 5], Codec.NONE), ([7, 4, 1], Codec.ZSTD), ([0, 4], Codec.NONE)],
)
def test_the_first_known_codec_compresses(accepted: list[int], codec: Codec) -> None:
    assert Client().subscription(accepted_compression_types=accepted).codec is codec


@pytest.mark.parametrize(
    ("requested", "names"),
    [
        ([], set()),
        (["*"], {"o.sum.total", "o.gauge.avg", "o.lag"}),
        ([""], {"o.sum.total", "o.gauge.avg", "o.lag"}),
        (["o.sum", "x"], {"o.sum.total"}),
        (["o.lag"], {"o.lag"}),
        (["o.lag.more", "O.LAG", "lag", "*.lag"], set()),
    ],
)
def test_names_match_by_their_beginning(requested: list[str], names: set[str]) -> None:
    assert Client().subscription(requested_metrics=requested).names == names


def test_a_huge_subscription_costs_little_and_is_not_kept() -> None:
    requested = [f"o.sum.{uuid.uuid4()}" for _ in range(200_000)]
    client = Client()
    began_seconds = time.process_time()
    found = client.subscription(requested_metrics=[*requested, "o.lag"])
    assert time.process_time() - began_seconds < 1
    assert found.names == {"o.lag"}
