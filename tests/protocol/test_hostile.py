"""The codec with hostile bytes: a `ProtocolError`, without an allocation of a claimed size."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.protocol import Message, decode, encode
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsResponse
from spark_kafka_source.protocol.messages.fetch import FetchRequest, FetchResponse
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorResponse
from spark_kafka_source.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.protocol.messages import MESSAGES, MESSAGES_AND_VERSIONS, all_versions, sample
from tests.protocol.strategies import damaged
from tests.traced import traced

QUICK = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def read_or_refuse(message_type: type[Message], version: int, data: bytes) -> Message | None:
    """Return the message or None for a `ProtocolError`. Another result is a bug."""
    try:
        return decode(message_type, version, data)
    except ProtocolError:
        return None


@pytest.mark.parametrize("message_type", MESSAGES)
@QUICK
@given(data=st.data())
def test_damaged_bytes(message_type: type[Message], data: st.DataObject) -> None:
    version, damaged_bytes = data.draw(damaged(message_type))
    read_or_refuse(message_type, version, damaged_bytes)


@pytest.mark.parametrize("message_type", MESSAGES)
@QUICK
@given(data=st.data(), noise=st.binary(max_size=64))
def test_noise(message_type: type[Message], data: st.DataObject, noise: bytes) -> None:
    read_or_refuse(message_type, data.draw(st.sampled_from(all_versions(message_type))), noise)


@pytest.mark.parametrize(("message_type", "version"), MESSAGES_AND_VERSIONS)
def test_every_truncation_is_refused(message_type: type[Message], version: int) -> None:
    data = encode(sample(message_type, version), version)
    for length in range(len(data)):
        with pytest.raises(ProtocolError, match=f"{message_type.__name__} v{version}, at byte"):
            decode(message_type, version, data[:length])


COUNTED = "2147483646 elements are announced"
# One topic without a name and one partition: its numbers, and no aborted transactions.
TO_RECORDS = "00000000 00000001 0000 00000001" + "00" * 22 + "00000000"


@pytest.mark.parametrize(
    ("message_type", "version", "reason", "data"),
    [
        # Arrays of structs and of numbers, then a compact array.
        (MetadataResponse, 0, COUNTED, "7ffffffe" + "00" * 64),
        (MetadataRequest, 0, COUNTED, "7ffffffe" + "00" * 64),
        (MetadataResponse, 9, COUNTED, "00000000" + "ffffffff07" + "00" * 64),
        # A string, records and a tagged field that claim the same size.
        (FindCoordinatorResponse, 3, "bytes are", "00000000 0000 ffffffff07" + "00" * 64),
        (FetchResponse, 4, "bytes are", TO_RECORDS + "7fffffff" + "00" * 64),
        (ApiVersionsResponse, 3, "bytes are", "0000 01 00000000 01 63 ffffffff07" + "00" * 64),
        # A claim of 4294967295 tagged fields.
        (ApiVersionsResponse, 3, "tag 99", "0000 01 00000000 ffffffff0f" + "6300" * 32),
    ],
)
def test_a_bomb_of_a_length_is_refused_before_memory_is_taken(
    message_type: type[Message], version: int, reason: str, data: str
) -> None:
    bomb = bytes.fromhex(data)
    read_or_refuse(message_type, version, bomb)  # So the memory of compilation does not count.
    with traced() as memory, pytest.raises(ProtocolError, match=reason):
        decode(message_type, version, bomb)
    assert memory.peak_bytes < 100_000


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ("01 01 09 0000000000000005", "tag 1 announces 9 bytes, has 8"),
        ("01 01 07 0000000000000005", "tag 1 announces 7 bytes, has 8"),
        ("02 01 08 0000000000000005 01 08 0000000000000005", "tag 1 comes after tag 1"),
        ("02 03 01 01 01 08 0000000000000005", "tag 1 comes after tag 3"),
        ("01 63 05 00", "5 bytes are announced, 1 are left"),
    ],
)
def test_wrong_tagged_fields_are_refused(tags: str, reason: str) -> None:
    data = bytes.fromhex("0000 01 00000000" + tags)
    if "9 bytes" in reason:
        data += b"\0"
    with pytest.raises(ProtocolError, match=reason):
        decode(ApiVersionsResponse, 3, data)


def test_unknown_tagged_fields_are_passed_over() -> None:
    data = bytes.fromhex("0000 01 00000000 03 01 08 0000000000000005 03 01 01 63 02 abcd")
    response = decode(ApiVersionsResponse, 3, data)
    expected = ApiVersionsResponse(finalized_features_epoch=5, zk_migration_ready=True)
    assert response == expected


def test_text_must_be_utf8() -> None:
    data = encode(FetchRequest(rack_id="ab"), 11).replace(b"ab", b"\xc3(")
    with pytest.raises(ProtocolError, match="utf-8"):
        decode(FetchRequest, 11, data)
