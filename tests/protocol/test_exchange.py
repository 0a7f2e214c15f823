"""One connection's exchange: versions of requests, matching answers, servers that are no broker."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import (
    BrokerError,
    LocalError,
    ProtocolError,
    UnsupportedVersionError,
)
from spark_kafka_source.protocol import (
    Exchange,
    Request,
    RequestHeader,
    Response,
    ResponseHeader,
    decode,
    decode_prefix,
    encode,
    request_header_version,
    response_header_version,
    versions,
)
from spark_kafka_source.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from spark_kafka_source.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.protocol.messages import REQUESTS

UNSUPPORTED_VERSION = 35


def all_ranges(**changed: tuple[int, int]) -> ApiVersionsResponse:
    """Return an answer with all of our versions, except for the APIs in `changed`."""
    ranges = {each: (versions(each).lowest, versions(each).highest) for each in REQUESTS} | {
        each: changed[each.__name__] for each in REQUESTS if each.__name__ in changed
    }
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(each.KEY, *lowest_and_highest) for each, lowest_and_highest in ranges.items()
        ]
    )


def informed(**changed: tuple[int, int]) -> Exchange:
    exchange = Exchange("me")
    exchange.api_versions(all_ranges(**changed))
    return exchange


def asked(exchange: Exchange, request: Request[Any], **limits: int) -> bytes:
    """Return the frame of a request in one piece."""
    return b"".join(exchange.request_frame(request, **limits))


def parsed(frame: bytes) -> tuple[RequestHeader, Any]:
    """Decode a frame, as a broker does."""
    size, content = int.from_bytes(frame[:4], "big"), frame[4:]
    assert size == len(content)
    key, version = int.from_bytes(content[:2], "big"), int.from_bytes(content[2:4], "big")
    (request_type,) = (each for each in REQUESTS if key == each.KEY)
    header, body = decode_prefix(
        RequestHeader, request_header_version(request_type, version), content
    )
    return header, decode(request_type, version, body)


def answer(frame: bytes, response: Response, *, version: int | None = None) -> memoryview:
    """Return a broker's frame with the answer to a request, without the frame's size."""
    header, request = parsed(frame)
    request_type: type[Request[Any]] = type(request)
    header_version = response_header_version(request_type, header.request_api_version)
    version = header.request_api_version if version is None else version
    content = encode(ResponseHeader(header.correlation_id), header_version)
    return memoryview(content + encode(response, version))


def test_a_request_goes_out_whole_in_the_highest_common_version() -> None:
    header, request = parsed(asked(informed(FetchRequest=(4, 16)), FetchRequest(max_wait_ms=7)))
    assert header == RequestHeader(FetchRequest.KEY, 16, 0, "me")
    assert request == FetchRequest(max_wait_ms=7)


def test_the_bytes_of_a_request() -> None:
    frame = asked(informed(FindCoordinatorRequest=(0, 3)), FindCoordinatorRequest("g"))
    assert frame.hex(" ", 1) == ("00 00 00 11 00 0a 00 03 00 00 00 00 00 02 6d 65 00 02 67 00 00")


def test_max_version_keeps_the_version_low() -> None:
    exchange = informed()
    header, _ = parsed(asked(exchange, FindCoordinatorRequest("g"), max_version=3))
    assert header.request_api_version == 3
    with pytest.raises(UnsupportedVersionError, match="3 at most was asked for"):
        asked(exchange, FetchRequest(), max_version=3)


def test_only_api_versions_may_go_first() -> None:
    exchange = Exchange("me")
    with pytest.raises(LocalError, match="Fetch: the versions of the broker are not known"):
        asked(exchange, FetchRequest())
    header, _ = parsed(asked(exchange, ApiVersionsRequest()))
    assert header.request_api_version == versions(ApiVersionsRequest).highest


def test_api_versions_says_who_we_are_in_letters_that_a_broker_takes() -> None:
    _, request = parsed(asked(Exchange("me"), ApiVersionsRequest()))
    assert request.client_software_name == "spark-kafka-source"
    for said in (request.client_software_name, request.client_software_version):
        assert re.fullmatch(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", said)


def test_supports() -> None:
    exchange = informed(FetchRequest=(11, 99))
    assert exchange.supports(FetchRequest, 18)
    assert not exchange.supports(FetchRequest, 10)
    assert not exchange.supports(FetchRequest, 19)
    with pytest.raises(LocalError, match="not known yet"):
        Exchange("me").supports(FetchRequest, 4)


@pytest.mark.parametrize(
    ("spoken", "text"),
    [
        ((0, 3), "Fetch: .* versions 4-18, the broker 0-3: it is older than Apache Kafka 2.1"),
        ((19, 21), "Fetch: .* versions 4-18, the broker 19-21: it is newer"),
    ],
)
def test_no_common_version(spoken: tuple[int, int], text: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=text):
        asked(informed(FetchRequest=spoken), FetchRequest())


def test_an_api_that_the_broker_does_not_have() -> None:
    exchange = Exchange("me")
    exchange.api_versions(ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4)]))
    with pytest.raises(UnsupportedVersionError, match="Fetch: the broker does not have this API"):
        asked(exchange, FetchRequest())


def test_answers_come_back_in_order() -> None:
    exchange = informed()
    first, second = (asked(exchange, each) for each in (MetadataRequest(), FetchRequest()))
    metadata_response, fetch_response = (
        MetadataResponse(controller_id=3),
        FetchResponse(session_id=4),
    )
    assert exchange.response(answer(first, metadata_response)) == (0, metadata_response)
    assert exchange.response(answer(second, fetch_response)) == (1, fetch_response)


def test_an_answer_out_of_order_is_refused() -> None:
    exchange = informed()
    asked(exchange, MetadataRequest())
    second = asked(exchange, FetchRequest())
    with pytest.raises(ProtocolError, match=r"Metadata: .* correlation id is 1, expected 0"):
        exchange.response(answer(second, FetchResponse()))


def test_an_answer_to_no_request_is_refused() -> None:
    with pytest.raises(ProtocolError, match="to no request"):
        informed().response(memoryview(bytes(8)))


def test_correlation_ids_stay_positive() -> None:
    exchange = informed()
    exchange._next_correlation_id = 0x7FFFFFFF
    ids = [parsed(asked(exchange, FetchRequest()))[0].correlation_id for _ in range(2)]
    assert ids == [0x7FFFFFFF, 0]


def test_a_request_that_cannot_be_said_leaves_no_trace() -> None:
    exchange = informed()
    with pytest.raises(LocalError):
        asked(exchange, FetchRequest(max_wait_ms=2**40))
    frame = asked(exchange, MetadataRequest())
    assert exchange.response(answer(frame, MetadataResponse())) == (0, MetadataResponse())


def test_a_request_without_an_answer_is_not_waited_for() -> None:
    exchange = informed()
    unanswered, next_one = ProduceRequest(acks=0), ProduceRequest(acks=1)
    assert not unanswered.expects_answer
    assert next_one.expects_answer
    assert parsed(asked(exchange, unanswered))[0].correlation_id == 0
    frame = asked(exchange, next_one)
    assert exchange.response(answer(frame, ProduceResponse())) == (1, ProduceResponse())


def produced(*records: Any) -> ProduceRequest:
    partitions = [PartitionProduceData(index, each) for index, each in enumerate(records)]
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData("t", partition_data=partitions)])


@given(
    st.lists(st.binary(max_size=9) | st.sampled_from([b"x" * 5000, b"y" * 9000]), max_size=4),
    st.sampled_from([8, 9, 12]),
)
def test_records_in_pieces_are_as_records_in_one(pieces: list[bytes], version: int) -> None:
    views = tuple(memoryview(each) for each in pieces)
    frames = [
        asked(informed(), produced(records, None, b"end"), max_version=version)
        for records in (b"".join(pieces), tuple(pieces), views)
    ]
    assert frames[0] == frames[1] == frames[2]
    _, request = parsed(frames[0])
    found = [each.records for each in request.topic_data[0].partition_data]
    assert found == [b"".join(pieces), None, b"end"]


def test_records_are_sent_from_where_they_lie() -> None:
    """Large records are not copied. Small pieces are joined, since more pieces would cost more."""
    header, payload, other = b"h" * 61, bytearray(100_000), bytearray(4096)
    frame = informed().request_frame(produced((header, payload), (header, other)), max_version=12)
    assert [len(each) for each in frame][1::2] == [100_000, 4096]
    assert len(frame) == 5
    payload[0], other[0] = 7, 8
    assert (frame[1][0], frame[3][0]) == (7, 8)
    assert parsed(b"".join(frame))[1].topic_data[0].partition_data[1].records == header + other


def test_a_client_id_that_does_not_fit_is_refused() -> None:
    with pytest.raises(LocalError, match=r"RequestHeader\.client_id"):
        asked(Exchange("x" * 40_000), ApiVersionsRequest())


def test_the_api_versions_answer_has_the_old_header() -> None:
    exchange = Exchange("me")
    asked(exchange, ApiVersionsRequest())
    correlation_id = "00000000"
    body = "0000" + "02" + "0012" + "0000" + "0004" + "00" + "00000000" + "00"
    response = ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 4)])
    assert exchange.response(memoryview(bytes.fromhex(correlation_id + body))) == (0, response)


def test_the_answer_to_a_flexible_request_has_tagged_fields_in_its_header() -> None:
    exchange = informed()
    asked(exchange, FindCoordinatorRequest("g"), max_version=3)
    correlation_id, tagged_field = "00000000", "01" + "05" + "02" + "abcd"
    body = "00000000" + "0000" + "00" + "00000001" + "02" + "61" + "00002384" + "00"
    frame = memoryview(bytes.fromhex(correlation_id + tagged_field + body))
    expected = FindCoordinatorResponse(error_message=None, node_id=1, host="a", port=9092)
    assert exchange.response(frame) == (0, expected)


@pytest.mark.parametrize(
    ("known", "expected"), [([ApiVersion(18, 0, 2)], 2), ([], 0), ([ApiVersion(18, 0, 3)], 3)]
)
def test_api_versions_falls_back_to_what_the_broker_knows(
    known: list[ApiVersion], expected: int
) -> None:
    """A broker before KIP-511 names no versions, but knows v0."""
    exchange = Exchange("me")
    frame = asked(exchange, ApiVersionsRequest())
    refusal = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=known)
    _, response = exchange.response(answer(frame, refusal, version=0))
    assert response == refusal
    assert exchange.api_versions(refusal)
    header, _ = parsed(asked(exchange, ApiVersionsRequest()))
    assert header.request_api_version == expected


def test_a_broker_that_refuses_every_version_is_not_asked_for_ever() -> None:
    exchange = Exchange("me")
    refusal = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=[ApiVersion(18, 0, 4)])
    for _ in range(versions(ApiVersionsRequest).highest):
        exchange.api_versions(refusal)
    with pytest.raises(UnsupportedVersionError, match="refused version 0 and speaks 0-4"):
        exchange.api_versions(refusal)


def test_another_error_of_api_versions_is_raised() -> None:
    with pytest.raises(BrokerError, match="ApiVersions: INVALID_REQUEST"):
        Exchange("me").api_versions(ApiVersionsResponse(error_code=42))


@pytest.mark.parametrize("wrong", [ApiVersion(1, 5, 4), ApiVersion(1, -1, 4)])
def test_a_range_that_is_none_is_refused(wrong: ApiVersion) -> None:
    with pytest.raises(ProtocolError, match="range of versions"):
        Exchange("me").api_versions(ApiVersionsResponse(api_keys=[wrong]))


def test_frame_size() -> None:
    exchange = Exchange("me", max_response_bytes=1000)
    assert exchange.frame_size((1000).to_bytes(4, "big")) == 1000


@pytest.mark.parametrize("size", [-1, -(2**31), 0, 3, 1001, 2**31 - 1])
def test_a_frame_size_out_of_bounds_is_refused(size: int) -> None:
    with pytest.raises(ProtocolError, match=f"{size} bytes is announced, expected 4 to 1000"):
        Exchange("me", max_response_bytes=1000).frame_size(size.to_bytes(4, "big", signed=True))


@pytest.mark.parametrize(
    ("prefix", "text"),
    [
        (b"\x15\x03\x03\x00", "this looks like TLS"),
        (b"\x16\x03\x01\x02", "this looks like TLS"),
        (b"HTTP", "this looks like an HTTP server"),
    ],
)
def test_a_server_that_is_no_broker_is_called_by_its_name(prefix: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        Exchange("me", max_response_bytes=2**31 - 1).frame_size(prefix)


@given(st.binary(max_size=60))
def test_any_frame_is_an_answer_or_refused(frame: bytes) -> None:
    exchange = informed()
    asked(exchange, FindCoordinatorRequest("g"), max_version=3)
    try:
        _, response = exchange.response(memoryview(frame))
    except ProtocolError:
        return
    assert isinstance(response, FindCoordinatorResponse)


@given(st.binary(min_size=4, max_size=4))
def test_any_prefix_is_a_size_or_refused(prefix: bytes) -> None:
    try:
        size = Exchange("me", max_response_bytes=2**20).frame_size(prefix)
    except ProtocolError:
        return
    assert 4 <= size <= 2**20
