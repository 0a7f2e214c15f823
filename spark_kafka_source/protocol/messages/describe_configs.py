"""DescribeConfigs (KIP-133): the configuration of topics and brokers."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT8, INT16, INT32, STRING


@message
class DescribeConfigsSynonym:
    """Another configuration that could give the value."""

    name: str = wire(STRING, "1+")
    value: str | None = wire(STRING, "1+", nullable="0+")
    source: int = wire(INT8, "1+")


@message
class DescribeConfigsResourceResult:
    """Configuration and its value."""

    name: str = wire(STRING, "0+")
    value: str | None = wire(STRING, "0+", nullable="0+")
    read_only: bool = wire(BOOLEAN, "0+")
    config_source: int = wire(INT8, "1+", default=-1, ignorable=True)
    is_sensitive: bool = wire(BOOLEAN, "0+")
    synonyms: list[DescribeConfigsSynonym] = wire(
        array(DescribeConfigsSynonym), "1+", ignorable=True
    )
    config_type: int = wire(INT8, "3+", ignorable=True)
    documentation: str | None = wire(STRING, "3+", nullable="0+", ignorable=True)


@message
class DescribeConfigsResult:
    """Configurations of one topic or broker."""

    error_code: int = wire(INT16, "0+")
    error_message: str | None = wire(STRING, "0+", nullable="0+")
    resource_type: int = wire(INT8, "0+")
    resource_name: str = wire(STRING, "0+")
    configs: list[DescribeConfigsResourceResult] = wire(array(DescribeConfigsResourceResult), "0+")


@message
class DescribeConfigsResponse(Response):
    """Configurations of each topic or broker."""

    throttle_time_ms: int = wire(INT32, "0+")
    results: list[DescribeConfigsResult] = wire(array(DescribeConfigsResult), "0+")


@message
class DescribeConfigsResource:
    """Topic (type 2) or broker (type 4), and the wanted configurations. None means all."""

    resource_type: int = wire(INT8, "0+")
    resource_name: str = wire(STRING, "0+")
    configuration_keys: list[str] | None = wire(array(STRING), "0+", nullable="0+")


@message
class DescribeConfigsRequest(Request[DescribeConfigsResponse]):
    """Request for configurations. Send a request about a broker to that broker."""

    KEY, VERSIONS, FLEXIBLE = 32, "1-4", "4+"
    resources: list[DescribeConfigsResource] = wire(array(DescribeConfigsResource), "0+")
    include_synonyms: bool = wire(BOOLEAN, "1+")
    include_documentation: bool = wire(BOOLEAN, "3+")
