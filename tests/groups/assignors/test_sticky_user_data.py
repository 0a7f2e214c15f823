"""Members' claims of owned partitions in user data. False claims are ignored."""

import pytest

from spark_kafka_source.groups.assignors import NO_GENERATION, Subscription
from spark_kafka_source.groups.assignors.ownership import Claim
from spark_kafka_source.groups.assignors.sticky_user_data import (
    cooperative_user_data,
    owned_claim,
    previous_claim,
    sticky_user_data,
)
from spark_kafka_source.topic_partition import TopicPartition

OWNED = (TopicPartition("t", 0), TopicPartition("t", 2))
GENERATIONS = pytest.mark.parametrize(
    ("said", "believed"), [(7, 7), (0, 0), (NO_GENERATION, NO_GENERATION), (-5, NO_GENERATION)]
)


@GENERATIONS
def test_a_member_of_sticky_says_both_in_its_user_data(said: int, believed: int) -> None:
    told = Subscription(("t",), sticky_user_data(OWNED, said), generation_id=99)
    assert previous_claim(told) == Claim(OWNED, believed)


@GENERATIONS
def test_one_of_cooperative_sticky_says_since_when_in_its_user_data(
    said: int, believed: int
) -> None:
    told = Subscription(("t",), cooperative_user_data(said), OWNED)
    assert owned_claim(told) == Claim(OWNED, believed)


def test_from_kafka_3_2_on_that_is_in_a_field_which_goes_before() -> None:
    told = Subscription(("t",), cooperative_user_data(3), OWNED, generation_id=8)
    assert owned_claim(told) == Claim(OWNED, 8)


@pytest.mark.parametrize("data", [None, b"", b"\xff"])
def test_bytes_that_say_nothing(data: bytes | None) -> None:
    told = Subscription(("t",), data, OWNED)
    assert previous_claim(told) == Claim((), NO_GENERATION)
    assert owned_claim(told) == Claim(OWNED, NO_GENERATION)
