"""ApiVersions (KIP-35, KIP-511, KIP-584, KIP-1242): the API versions that a broker supports."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING


@message
class ApiVersion:
    """Versions of one API that the broker supports, both ends included."""

    api_key: int = wire(INT16, "0+")
    min_version: int = wire(INT16, "0+")
    max_version: int = wire(INT16, "0+")


@message
class SupportedFeatureKey:
    """Levels of one feature that the broker supports."""

    name: str = wire(STRING, "3+")
    min_version: int = wire(INT16, "3+")
    max_version: int = wire(INT16, "3+")


@message
class FinalizedFeatureKey:
    """Levels of one feature that are in use in the whole cluster."""

    name: str = wire(STRING, "3+")
    max_version_level: int = wire(INT16, "3+")
    min_version_level: int = wire(INT16, "3+")


@message
class ApiVersionsResponse(Response):
    """Versions of each API.

    After UNSUPPORTED_VERSION it is always in v0, and `api_keys` may be empty.
    """

    error_code: int = wire(INT16, "0+")
    api_keys: list[ApiVersion] = wire(array(ApiVersion), "0+")
    throttle_time_ms: int = wire(INT32, "1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = wire(
        array(SupportedFeatureKey), "3+", tag=0, tagged="3+", ignorable=True
    )
    finalized_features_epoch: int = wire(
        INT64, "3+", tag=1, tagged="3+", default=-1, ignorable=True
    )
    finalized_features: list[FinalizedFeatureKey] = wire(
        array(FinalizedFeatureKey), "3+", tag=2, tagged="3+", ignorable=True
    )
    zk_migration_ready: bool = wire(BOOLEAN, "3+", tag=3, tagged="3+", ignorable=True)


@message
class ApiVersionsRequest(Request[ApiVersionsResponse]):
    """Request for the versions of a broker. Only this request may be the first on a connection."""

    KEY, VERSIONS, FLEXIBLE = 18, "0-5", "3+"
    client_software_name: str = wire(STRING, "3+", ignorable=True)
    client_software_version: str = wire(STRING, "3+", ignorable=True)
    cluster_id: str | None = wire(STRING, "5+", nullable="5+", default=None, ignorable=True)
    node_id: int = wire(INT32, "5+", default=-1, ignorable=True)
