"""DescribeTransactions (KIP-664): the state of transactions, by transactional id."""

from spark_kafka_source.protocol.declaration import Request, Response, array, message, wire
from spark_kafka_source.protocol.wire import INT16, INT32, INT64, STRING


@message
class TopicData:
    """Partitions of one topic that are in the transaction, or still lack its end marker."""

    topic: str = wire(STRING, "0+")
    partitions: list[int] = wire(array(INT32), "0+")


@message
class TransactionState:
    """Last transaction of one id. Its state is Empty, Ongoing, PrepareCommit and so on."""

    error_code: int = wire(INT16, "0+")
    transactional_id: str = wire(STRING, "0+")
    transaction_state: str = wire(STRING, "0+")
    transaction_timeout_ms: int = wire(INT32, "0+")
    transaction_start_time_ms: int = wire(INT64, "0+")
    producer_id: int = wire(INT64, "0+")
    producer_epoch: int = wire(INT16, "0+")
    topics: list[TopicData] = wire(array(TopicData), "0+")


@message
class DescribeTransactionsResponse(Response):
    """State of each transaction."""

    throttle_time_ms: int = wire(INT32, "0+")
    transaction_states: list[TransactionState] = wire(array(TransactionState), "0+")


@message
class DescribeTransactionsRequest(Request[DescribeTransactionsResponse]):
    """Request for the state of transactions. Send it to their coordinator."""

    KEY, VERSIONS, FLEXIBLE = 65, "0", "0+"
    transactional_ids: list[str] = wire(array(STRING), "0+")
