"""What a test may have a node answer in place of the truth."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from spark_kafka_source.errors import ErrorCode
from spark_kafka_source.protocol import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    Coordinator,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
    PartitionData,
    Request,
    Response,
)
from spark_kafka_source.protocol.messages.offset_for_leader_epoch import EpochEndOffset


class Action(Enum):
    """What a node can do other than answer."""

    HANDLE = "answer as if there were no control"
    CLOSE = "close the connection"
    SILENCE = "keep the connection and never answer"


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes in the place of an answer, frame size included; then the connection may be closed."""

    data: bytes
    close: bool = False


class Hold:
    """Keeps the true answer back until `release`, which any thread may call at any time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._released = asyncio.Event()

    async def passed(self) -> None:
        await self._released.wait()

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)


FixedAnswer = Response | ErrorCode | Raw | Hold | Action
Answer = FixedAnswer | Callable[[Any], FixedAnswer]
"""An answer, or a function that is asked for one with each request; an error goes where the API
puts errors of partitions, groups or topics."""


def failure(request: Request[Any], error: ErrorCode, version: int) -> Response:
    """The answer that has `error` wherever this API's answer can have one for what was asked."""
    return _FAILURES[type(request)](request, error.code, version)


def _api_versions(request: ApiVersionsRequest, code: int, version: int) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=code)


def _metadata(request: MetadataRequest, code: int, version: int) -> MetadataResponse:
    names = [topic.name for topic in request.topics or ()]
    return MetadataResponse(topics=[MetadataResponseTopic(code, name) for name in names])


def _list_offsets(request: ListOffsetsRequest, code: int, version: int) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [
                    ListOffsetsPartitionResponse(partition.partition_index, code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _fetch(request: FetchRequest, code: int, version: int) -> FetchResponse:
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [PartitionData(partition.partition, code) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _find_coordinator(
    request: FindCoordinatorRequest, code: int, version: int
) -> FindCoordinatorResponse:
    if version < 4:
        return FindCoordinatorResponse(error_code=code, node_id=-1, port=-1)
    nowhere = [Coordinator(key, -1, "", -1, code) for key in request.coordinator_keys]
    return FindCoordinatorResponse(coordinators=nowhere)


def _offset_commit(request: OffsetCommitRequest, code: int, version: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [
                    OffsetCommitResponsePartition(partition.partition_index, code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _offset_fetch(request: OffsetFetchRequest, code: int, version: int) -> OffsetFetchResponse:
    return OffsetFetchResponse(error_code=code)


def _offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, code: int, version: int
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic, [EpochEndOffset(code, each.partition) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


_FAILURES: dict[type[Request[Any]], Callable[[Any, int, int], Response]] = {
    ApiVersionsRequest: _api_versions,
    MetadataRequest: _metadata,
    ListOffsetsRequest: _list_offsets,
    FetchRequest: _fetch,
    FindCoordinatorRequest: _find_coordinator,
    OffsetCommitRequest: _offset_commit,
    OffsetFetchRequest: _offset_fetch,
    OffsetForLeaderEpochRequest: _offset_for_leader_epoch,
}
