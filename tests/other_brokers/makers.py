"""What other makers' brokers lack or refuse, by their documentation, for the in-memory broker.

https://learn.microsoft.com/azure/event-hubs/apache-kafka-configurations
https://docs.warpstream.com/warpstream/reference/protocol-and-feature-support
https://docs.redpanda.com/current/develop/kafka-clients/
https://docs.streamnative.io/docs/compatibility-with-kafka
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from spark_kafka_source.errors import ErrorCode, error_named
from spark_kafka_source.protocol import Request, Versions
from spark_kafka_source.protocol.messages.describe_producers import DescribeProducersRequest
from spark_kafka_source.protocol.messages.describe_transactions import DescribeTransactionsRequest
from spark_kafka_source.protocol.messages.fetch import FetchRequest
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsRequest
from spark_kafka_source.protocol.messages.membership import ConsumerGroupHeartbeatRequest
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from spark_kafka_source.records import Codec
from spark_kafka_source.testing.memory import Action, MemoryBroker

_NONE = Versions.parse("none")
_UNSUPPORTED_CODEC = error_named("UNSUPPORTED_COMPRESSION_TYPE")
_ATTRIBUTES_AT, _CODEC_BITS = 21, 0x07
_TRANSACTIONS = (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)


@dataclass(frozen=True, slots=True)
class Maker:
    """A maker's brokers."""

    name: str
    without: tuple[type[Request[Any]], ...] = ()
    """The APIs that they do not have."""
    codecs: tuple[Codec, ...] = tuple(Codec)
    most_request_bytes: float = math.inf
    """They hang up on a Produce request with more bytes of records."""
    throttle_ms: int = 0
    """The time for which they ask a client to wait after each fetch."""

    @property
    def has_transactions(self) -> bool:
        """Whether a transaction can be committed."""
        return EndTxnRequest not in self.without

    @property
    def has_second_protocol(self) -> bool:
        """Whether groups may have the protocol of KIP-848."""
        return ConsumerGroupHeartbeatRequest not in self.without

    @contextmanager
    def broker(self) -> Iterator[MemoryBroker]:
        """Run such a broker."""
        lacking = dict.fromkeys((each.KEY for each in self.without), _NONE)
        with MemoryBroker(versions=lacking) as broker:
            broker.control(ProduceRequest, self._produce, times=None)
            broker.cluster.throttle_time_ms[FetchRequest] = self.throttle_ms
            yield broker

    def _produce(self, request: ProduceRequest) -> Action | ErrorCode:
        parts = [each.records for topic in request.topic_data for each in topic.partition_data]
        batches = [
            bytes(each) for each in parts if isinstance(each, bytes | bytearray | memoryview)
        ]
        if sum(map(len, batches)) > self.most_request_bytes:
            return Action.CLOSE
        codecs = {Codec(each[_ATTRIBUTES_AT + 1] & _CODEC_BITS) for each in batches}
        return Action.HANDLE if codecs <= {*self.codecs} else _UNSUPPORTED_CODEC


MAKERS = (
    Maker(
        "Event Hubs",
        (ConsumerGroupHeartbeatRequest, *_TRANSACTIONS, DescribeTransactionsRequest),
        codecs=(Codec.NONE, Codec.GZIP),
        most_request_bytes=1_046_528,
        throttle_ms=5,
    ),
    Maker(
        "WarpStream",
        (ConsumerGroupHeartbeatRequest, OffsetForLeaderEpochRequest, DescribeProducersRequest),
    ),
    Maker("Redpanda", (ConsumerGroupHeartbeatRequest,)),
    Maker("Ursa", (AddPartitionsToTxnRequest, EndTxnRequest, ListTransactionsRequest)),
)
