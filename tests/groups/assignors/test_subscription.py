"""Subscriptions and assignments between members: all versions, and malformed bytes."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ProtocolError
from spark_kafka_source.groups.assignors import Assignment, Subscription
from spark_kafka_source.protocol import encode
from spark_kafka_source.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)
from tests.groups.assignors.topics import partition

FULL = Subscription(
    topics=("a", "b"),
    user_data=b"mine",
    owned=(partition("a-0"), partition("a-2"), partition("b-1")),
    generation_id=7,
    rack_id="east",
)


def in_version(version: int) -> bytes:
    message = decode_versioned(ConsumerProtocolSubscription, FULL.encode())
    return version.to_bytes(2, signed=True) + encode(message, version)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (0, Subscription(FULL.topics, FULL.user_data)),
        (1, Subscription(FULL.topics, FULL.user_data, FULL.owned)),
        (2, Subscription(FULL.topics, FULL.user_data, FULL.owned, 7)),
        (3, FULL),
    ],
)
def test_older_members_tell_less(version: int, expected: Subscription) -> None:
    assert Subscription.decode(in_version(version)) == expected


def test_a_newer_version_of_a_subscription_is_read_as_the_known_one() -> None:
    newer = (9).to_bytes(2) + in_version(3)[2:] + b"what we do not know"
    assert Subscription.decode(newer) == FULL


def test_a_round_trip() -> None:
    assert Subscription.decode(FULL.encode(), "instance").group_instance_id == "instance"
    assignment = Assignment((partition("b-1"), partition("b-0"), partition("a-3")), b"")
    assert Assignment.decode(assignment.encode()) == assignment


def test_what_is_said_twice_counts_once() -> None:
    twice = ConsumerProtocolSubscription.TopicPartition("a", [1, 1])
    message = ConsumerProtocolSubscription(["a", "a"], None, [twice, twice], -5, "")
    expected = Subscription(("a",), owned=(partition("a-1"),))
    assert Subscription.decode(encode_versioned(message)) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes, where its version takes 2"),
        (b"\0", "1 bytes, where its version takes 2"),
        (b"\xff\xff" + bytes(8), "version -1, where 0 is the least"),
        (b"\0\3" + bytes(3), "at byte"),
        (b"\0\0\x7f\xff\xff\xff" + bytes(64), "2147483647 elements are announced"),
    ],
)
def test_nonsense_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=f"ConsumerProtocolSubscription.*{reason}"):
        Subscription.decode(data)
    with pytest.raises(ProtocolError, match=f"ConsumerProtocolAssignment.*{reason}"):
        Assignment.decode(data)


@given(st.binary(max_size=80), st.sampled_from([b"", b"\0\0", b"\0\3", b"\x7f\xff"]))
def test_any_bytes(data: bytes, version: bytes) -> None:
    for decode in (Subscription.decode, Assignment.decode):
        with suppress(ProtocolError):
            decode(version + data)


def test_the_order_of_an_assignment_is_kept_within_a_topic() -> None:
    found = decode_versioned(
        ConsumerProtocolAssignment,
        Assignment((partition("b-1"), partition("a-3"), partition("b-0"))).encode(),
    )
    assert [(each.topic, each.partitions) for each in found.assigned_partitions] == [
        ("b", [1, 0]),
        ("a", [3]),
    ]
