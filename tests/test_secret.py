"""A secret is visible only through `reveal`."""

import logging
import pickle
import traceback
from dataclasses import dataclass

import pytest

from spark_kafka_source.errors import (
    ERRORS,
    BootstrapError,
    BrokerError,
    ConfigurationError,
    ConnectionFailedError,
    CorruptRecordError,
    KafkaError,
    UnsupportedVersionError,
)
from spark_kafka_source.net import AuthenticationError
from spark_kafka_source.secret import REDACTED, Secret, shown
from spark_kafka_source.spark.conditions import DataLossError
from spark_kafka_source.topic_partition import TopicPartition

CANARY = "hunter2-canary"


@dataclass(frozen=True, slots=True)
class Holder:
    password: Secret


def test_only_reveal_gives_it_away(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(CANARY)
    assert secret.reveal() == CANARY
    logging.getLogger("test").warning("%s %r", secret, [secret])
    try:
        raise ValueError(secret, Holder(secret))
    except ValueError:
        shown = traceback.format_exc()
    for text in (repr(secret), str(secret), f"{secret}", repr(Holder(secret)), shown, caplog.text):
        assert CANARY not in text
    assert not hasattr(secret, "__dict__")


def test_it_travels_and_is_equal_to_itself() -> None:
    there = pickle.loads(pickle.dumps(Secret(CANARY)))  # our own bytes
    assert there == Secret(CANARY)
    assert there.reveal() == CANARY
    assert hash(there) == hash(Secret(CANARY))
    assert there != Secret("another")
    assert there != CANARY
    assert (bool(Secret("")), bool(there)) == (False, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "'a'"),
        (7, "7"),
        (Secret(CANARY), REDACTED),
        ("\x1b[2J\nINFO forged\u202e", r"'\x1b[2J\nINFO forged\u202e'"),
        ("a" * 101, f"'{'a' * 100}'..."),
    ],
)
def test_what_errors_show(text: str | int | Secret, expected: str) -> None:
    assert shown(text) == expected


HOSTILE = "\x1b[2J\x1b]0;x\x07\r\nINFO forged\u202e\u2028\0"


@pytest.mark.parametrize(
    "error",
    [
        BrokerError(ERRORS[29], f"Fetch of {HOSTILE}", HOSTILE),
        ConnectionFailedError(f"{HOSTILE}:9092"),
        BootstrapError([HOSTILE]),
        CorruptRecordError(TopicPartition(HOSTILE, 0), 7, HOSTILE),
        AuthenticationError("PLAIN", HOSTILE),
        DataLossError("X", HOSTILE),
        UnsupportedVersionError(HOSTILE),
        ConfigurationError(HOSTILE, f"{HOSTILE} {{}}", HOSTILE, HOSTILE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_error_forges_a_line_or_steers_a_terminal(error: KafkaError) -> None:
    assert str(error).isprintable()
    assert "INFO forged" in str(error)


def test_no_topic_does_either() -> None:
    assert str(TopicPartition(HOSTILE, 3)).isprintable()
    assert str(TopicPartition("a.b-c_d", 3)) == "a.b-c_d-3"


def test_an_error_has_an_end() -> None:
    assert len(str(BrokerError(ERRORS[29], "Fetch", "a" * 1_000_000))) < 5_000
