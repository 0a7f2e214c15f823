"""A broker's wish for metrics, as this client can fulfil it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from spark_kafka_source.protocol.messages.telemetry import GetTelemetrySubscriptionsResponse
from spark_kafka_source.records import Codec
from spark_kafka_source.telemetry.otlp import Temporality

USUAL_INTERVAL_MS = 300_000
"""Kafka's default of `interval.ms`. It takes the place of a time that no broker may ask for."""

_LEAST_INTERVAL_MS = 100
"""The least `interval.ms` that Kafka allows."""

_MOST_BYTES = 1 << 20
"""Kafka's default of `telemetry.max.bytes`. A broker that takes more gets no more."""

_ALL = "*"


@dataclass(frozen=True, slots=True)
class Subscription:
    """The metrics that a broker wants, how often, and in which form.

    Nothing of the answer is kept that could be large: `names` are some of the client's own.
    """

    subscription_id: int
    push_interval_ms: int
    most_bytes: int
    temporality: Temporality
    codec: Codec
    names: frozenset[str]

    @classmethod
    def of(
        cls,
        answer: GetTelemetrySubscriptionsResponse,
        names: Iterable[str],
        refused: Collection[Codec],
    ) -> "Subscription":
        """Return the subscription in a broker's answer.

        `names` are those of the client's metrics. `refused` are codecs that brokers have refused,
        though they were accepted in an answer.
        """
        return cls(
            answer.subscription_id,
            interval_ms(answer.push_interval_ms),
            min(max(answer.telemetry_max_bytes, 0), _MOST_BYTES),
            Temporality.DELTA if answer.delta_temporality else Temporality.CUMULATIVE,
            _codec(answer.accepted_compression_types, refused),
            _matching(answer.requested_metrics, names),
        )


def interval_ms(asked_ms: int) -> int:
    """Return the time between pushes: what a broker asks for, if Kafka allows it."""
    return max(asked_ms, _LEAST_INTERVAL_MS) if asked_ms > 0 else USUAL_INTERVAL_MS


def _codec(accepted: Iterable[int], refused: Collection[Codec]) -> Codec:
    """Return the first that is known: brokers list them by preference."""
    known = {codec.value: codec for codec in Codec if codec not in refused}
    return next((known[number] for number in accepted if number in known), Codec.NONE)


def _matching(requested: Collection[str], names: Iterable[str]) -> frozenset[str]:
    """Return the names that begin with a requested prefix. An empty prefix, and `*`, mean all.

    Each name is cut in all ways, so a long list of prefixes costs little.
    """
    prefixes = frozenset(requested)
    if prefixes == {_ALL}:
        return frozenset(names)
    return frozenset(
        name for name in names if any(name[:end] in prefixes for end in range(len(name) + 1))
    )
