"""Clients' metrics, for the in-memory broker: it gives ids, and takes all pushes."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spark_kafka_source.errors import error_named
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from spark_kafka_source.testing.memory.cluster import MemoryCluster
from spark_kafka_source.testing.memory.coordinator import Handler


def get_telemetry_subscriptions(
    cluster: MemoryCluster, node_id: int, request: GetTelemetrySubscriptionsRequest, version: int
) -> GetTelemetrySubscriptionsResponse:
    """v0. A client without an id gets a new one."""
    given = request.client_instance_id
    return replace(cluster.telemetry, client_instance_id=given if given.int else uuid.uuid4())


def push_telemetry(
    cluster: MemoryCluster, node_id: int, request: PushTelemetryRequest, version: int
) -> PushTelemetryResponse:
    """v0. The push must be for the present subscription."""
    is_known = request.subscription_id == cluster.telemetry.subscription_id
    error_code = 0 if is_known else error_named("UNKNOWN_SUBSCRIPTION_ID").code
    return PushTelemetryResponse(error_code=error_code)


TELEMETRY_HANDLERS: Mapping[type[Request[Any]], Handler] = {
    GetTelemetrySubscriptionsRequest: get_telemetry_subscriptions,
    PushTelemetryRequest: push_telemetry,
}
