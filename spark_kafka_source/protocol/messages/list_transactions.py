"""ListTransactions (KIP-664, KIP-994, KIP-1152): the transactional ids of one coordinator."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import INT16, INT32, INT64, STRING


@message
class TransactionState:
    """Transactional id and its state."""

    transactional_id: str = wire(STRING, "0+")
    producer_id: int = wire(INT64, "0+")
    transaction_state: str = wire(STRING, "0+")


@message
class ListTransactionsResponse(Response):
    """Transactional ids that this broker coordinates and that pass the filters."""

    throttle_time_ms: int = wire(INT32, "0+")
    error_code: int = wire(INT16, "0+")
    unknown_state_filters: list[str] = wire(array(STRING), "0+")
    transaction_states: list[TransactionState] = wire(array(TransactionState), "0+")


@message
class ListTransactionsRequest(Request[ListTransactionsResponse]):
    """Request for the transactional ids of a coordinator. An empty filter excludes nothing.

    The duration is in milliseconds. The pattern is for RE2/J.
    """

    KEY, VERSIONS, FLEXIBLE = 66, "0-2", "0+"
    state_filters: list[str] = wire(array(STRING), "0+")
    producer_id_filters: list[int] = wire(array(INT64), "0+")
    duration_filter: int = wire(INT64, "1+", default=-1)
    transactional_id_pattern: str | None = wire(STRING, "2+", nullable="2+", default=None)
