"""The two generations of transactions, and what differs between them.

In the second (KIP-890, `transaction.version` 2) the end of a transaction raises the epoch of its
producer. So a transactional id and an epoch name one transaction.

The versions of a client's requests choose the generation of each transaction. Newer brokers serve
both, whatever the cluster's `transaction.version` is. So a process may go on with the one that it
has begun with while the cluster is upgraded or downgraded.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.denials import refusal
from spark_kafka_source.net import Deadline
from spark_kafka_source.producer.sequences import ProducerId
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.protocol.messages.transactions import EndTxnRequest, TxnOffsetCommitRequest

_FEATURE, _SECOND_LEVEL = "transaction.version", 2


class Generation(Enum):
    """The generation of transactions that a cluster and this client speak."""

    FIRST = 1
    SECOND = 2

    def max_version(self, request_type: type[Request[Any]]) -> int | None:
        """Return the last version of a request in this generation; None for no limit."""
        return _LAST_VERSIONS[self].get(request_type)

    @property
    def begins_by_writing(self) -> bool:
        """Whether rows and offsets join the transaction as they are written, unannounced."""
        return self is Generation.SECOND

    @property
    def keeps_control(self) -> bool:
        """Whether a driver fences others once in a run, and not before each decision.

        In the first generation a late copy of a decision's request could enter the next decision.
        """
        return self is Generation.SECOND

    def after_end(self, producer: ProducerId) -> ProducerId | None:
        """Return the id and epoch after the end of a transaction; None if brokers choose a new id.

        A worker of the second generation begins its next transaction with it, and asks nobody.
        """
        return producer.bumped() if self is Generation.SECOND else producer


_LAST_VERSIONS: Mapping[Generation, Mapping[type[Request[Any]], int]] = MappingProxyType(
    {
        Generation.FIRST: {ProduceRequest: 11, EndTxnRequest: 4, TxnOffsetCommitRequest: 4},
        # The next versions name topics by their ids.
        Generation.SECOND: {ProduceRequest: 12, TxnOffsetCommitRequest: 5},
    }
)


async def generation_of(client: KafkaClient) -> Generation:
    """Return the newest generation that the whole cluster has agreed on (KIP-584)."""

    async def attempt(deadline: Deadline) -> Generation:
        answer = await client.send_to_any(ApiVersionsRequest(), deadline)
        if answer.error_code:
            raise refusal(answer.error_code, "ApiVersions")
        levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
        is_second = levels.get(_FEATURE, 0) >= _SECOND_LEVEL
        return Generation.SECOND if is_second else Generation.FIRST

    return await client.retrying("ApiVersions", attempt)
