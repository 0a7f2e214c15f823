"""A secret shows itself to nobody who does not ask for it."""

import logging
import pickle
import traceback
from dataclasses import dataclass

import pytest

from spark_kafka_source.secret import Secret

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
