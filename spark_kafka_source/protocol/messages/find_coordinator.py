"""Coordinators of groups and of transactional ids: FindCoordinator (KIP-699)."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import INT8, INT16, INT32, STRING


@message
class Coordinator:
    """Coordinator of one key."""

    key: str = wire(STRING, "4+")
    node_id: int = wire(INT32, "4+")
    host: str = wire(STRING, "4+")
    port: int = wire(INT32, "4+")
    error_code: int = wire(INT16, "4+")
    error_message: str | None = wire(STRING, "4+", nullable="4+", ignorable=True)


@message
class FindCoordinatorResponse(Response):
    """Coordinator of one key, or from v4 on of each key."""

    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    error_code: int = wire(INT16, "0-3")
    error_message: str | None = wire(STRING, "1-3", nullable="1-3", ignorable=True)
    node_id: int = wire(INT32, "0-3")
    host: str = wire(STRING, "0-3")
    port: int = wire(INT32, "0-3")
    coordinators: list[Coordinator] = wire(array(Coordinator), "4+")


@message
class FindCoordinatorRequest(Request[FindCoordinatorResponse]):
    """Request for a group's coordinator, or from v4 on for several (KIP-699)."""

    KEY, VERSIONS, FLEXIBLE = 10, "0-6", "3+"
    key: str = wire(STRING, "0-3")
    key_type: int = wire(INT8, "1+")
    coordinator_keys: list[str] = wire(array(STRING), "4+")
