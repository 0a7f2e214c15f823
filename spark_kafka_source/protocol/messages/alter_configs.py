"""IncrementalAlterConfigs (KIP-339): changes to the configurations of topics and brokers."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT8, INT16, INT32, STRING


@message
class AlterConfigsResourceResponse:
    """Result for one topic or broker."""

    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "0+", nullable="0+")
    resource_type: int = wire(INT8, "0+")
    resource_name: str = wire(STRING, "0+")


@message
class IncrementalAlterConfigsResponse(Response):
    """Results for each topic or broker."""

    throttle_time_ms: int = wire(INT32, "0+")
    responses: list[AlterConfigsResourceResponse] = wire(array(AlterConfigsResourceResponse), "0+")


@message
class AlterableConfig:
    """Change of one configuration. The operations are set, delete, append and subtract: 0 to 3."""

    name: str = wire(STRING, "0+")
    config_operation: int = wire(INT8, "0+")
    value: str | None = wire(STRING, "0+", nullable="0+")


@message
class AlterConfigsResource:
    """Topic or broker, and the changes to its configurations. Others stay as they are."""

    resource_type: int = wire(INT8, "0+")
    resource_name: str = wire(STRING, "0+")
    configs: list[AlterableConfig] = wire(array(AlterableConfig), "0+")


@message
class IncrementalAlterConfigsRequest(Request[IncrementalAlterConfigsResponse]):
    """Request for changes. Send a request about a broker to that broker."""

    KEY, VERSIONS, FLEXIBLE = 44, "0-1", "1+"
    resources: list[AlterConfigsResource] = wire(array(AlterConfigsResource), "0+")
    validate_only: bool = wire(BOOLEAN, "0+")
