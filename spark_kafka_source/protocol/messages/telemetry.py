"""GetTelemetrySubscriptions and PushTelemetry (KIP-714): a client's metrics for a broker."""

import uuid

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, BYTES, INT8, INT16, INT32, STRING, UUID


@message
class GetTelemetrySubscriptionsResponse(Response):
    """Metrics that the broker wants. The id of the client is new if the request had none."""

    throttle_time_ms: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    client_instance_id: uuid.UUID = wire(UUID, "0+")
    subscription_id: int = wire(INT32, "0+")
    accepted_compression_types: list[int] = wire(array(INT8), "0+")
    push_interval_ms: int = wire(INT32, "0+")
    telemetry_max_bytes: int = wire(INT32, "0+")
    delta_temporality: bool = wire(BOOLEAN, "0+")
    requested_metrics: list[str] = wire(array(STRING), "0+")


@message
class GetTelemetrySubscriptionsRequest(Request[GetTelemetrySubscriptionsResponse]):
    """Question which metrics a broker wants. The first one has the id zero."""

    KEY, VERSIONS, FLEXIBLE = 71, "0", "0+"
    client_instance_id: uuid.UUID = wire(UUID, "0+")


@message
class PushTelemetryResponse(Response):
    """Result of a push."""

    throttle_time_ms: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")


@message
class PushTelemetryRequest(Request[PushTelemetryResponse]):
    """Metrics as OTLP's `MetricsData` in Protobuf, perhaps compressed.

    The broker must be told the subscription that they are for. The last push is terminating.
    """

    KEY, VERSIONS, FLEXIBLE = 72, "0", "0+"
    client_instance_id: uuid.UUID = wire(UUID, "0+")
    subscription_id: int = wire(INT32, "0+")
    terminating: bool = wire(BOOLEAN, "0+")
    compression_type: int = wire(INT8, "0+")
    metrics: bytes = wire(BYTES, "0+")
