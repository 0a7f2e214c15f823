"""Errors of refusals: what the broker said, then advice. A denial names the missing right."""

import pytest

from spark_kafka_source.denials import Access, missing_right, refusal, topic_failure
from spark_kafka_source.errors import TopicNotFoundError, error_named

NAMES = {"topic": "t", "group_id": "g", "transactional_id": "i"}


@pytest.mark.parametrize(
    ("access", "error", "said"),
    [
        (Access.READ, "TOPIC", ["READ on topic 't'", "leave the topic out"]),
        (Access.READ, "GROUP", ["READ on group 'g'", "another 'kafka.group.id'"]),
        (Access.WRITE, "TOPIC", ["WRITE on topic 't'", "CREATE where", "another topic"]),
        (Access.WRITE, "GROUP", ["READ on group 'g'", "leave the offsets out"]),
        (
            Access.WRITE,
            "CLUSTER",
            ["IDEMPOTENT_WRITE on the cluster", "WRITE on any topic", "'kafka.enable.idempotence'"],
        ),
        (Access.WRITE, "TRANSACTIONAL_ID", ["WRITE on transactional id 'i'", "another 'kafka.tra"]),
    ],
)
def test_a_denial_names_the_right_and_the_way_out(
    access: Access, error: str, said: list[str]
) -> None:
    text = missing_right(error_named(f"{error}_AUTHORIZATION_FAILED"), access=access, **NAMES)
    assert text is not None
    assert text.startswith("the user needs ")
    assert [each for each in said if each not in text] == []


@pytest.mark.parametrize("access", Access)
def test_what_is_no_denial_lacks_nothing(access: Access) -> None:
    assert missing_right(error_named("NOT_COORDINATOR"), access=access, **NAMES) is None


@pytest.mark.parametrize("error", ["TOPIC", "GROUP", "TRANSACTIONAL_ID"])
def test_a_denial_of_what_has_no_name_here_names_no_right(error: str) -> None:
    assert missing_right(error_named(f"{error}_AUTHORIZATION_FAILED")) is None


def test_one_who_administers_is_told_of_no_right_of_members_and_producers() -> None:
    for error, is_told in {"TOPIC": True, "GROUP": False, "TRANSACTIONAL_ID": False}.items():
        code = error_named(f"{error}_AUTHORIZATION_FAILED")
        assert (missing_right(code, access=Access.ADMIN, **NAMES) is not None) is is_told


def test_one_who_reads_is_told_nothing_of_writing() -> None:
    assert missing_right(error_named("CLUSTER_AUTHORIZATION_FAILED")) is None


@pytest.mark.parametrize(
    ("said", "advice", "detail"),
    [
        (None, None, None),
        ("", None, None),
        ("No. ", None, "No"),
        (None, "ask again", "ask again"),
        ("No.", "ask again", "No. Ask again"),
    ],
)
def test_what_the_broker_said_comes_before_the_advice(
    said: str | None, advice: str | None, detail: str | None
) -> None:
    error = refusal(16, "Fetch of t-0", said, advice=advice)
    assert (error.error, error.what) == (error_named("NOT_COORDINATOR"), "Fetch of t-0")
    assert error.detail == detail


def test_a_refusal_for_want_of_a_right_names_the_right() -> None:
    denied = error_named("GROUP_AUTHORIZATION_FAILED")
    assert str(refusal(denied, "Heartbeat", "ask Ann", group_id="g")).startswith(
        "Heartbeat: GROUP_AUTHORIZATION_FAILED (30): ask Ann. The user needs READ on group 'g'"
    )


def test_a_topic_is_not_there_or_not_to_be_seen() -> None:
    assert isinstance(
        topic_failure(error_named("UNKNOWN_TOPIC_OR_PARTITION"), "t"), TopicNotFoundError
    )
    denied = topic_failure(error_named("TOPIC_AUTHORIZATION_FAILED"), "t")
    assert "Metadata of t" in str(denied)
    assert "needs READ on topic 't'" in str(denied)
