"""PLAIN by RFC 4616."""

import pytest

from spark_kafka_source.net.sasl import AuthenticationError
from spark_kafka_source.net.sasl.logins import PasswordLogin
from spark_kafka_source.net.sasl.plain import Plain
from spark_kafka_source.secret import Secret


def test_the_example_of_the_rfc() -> None:
    client = Plain(PasswordLogin("tim", Secret("tanstaaftanstaaf")))
    assert client.first() == b"\0tim\0tanstaaftanstaaf"
    assert client.next(b"") is None


def test_nothing_may_follow() -> None:
    with pytest.raises(AuthenticationError, match="PLAIN: the broker answered with 4 bytes"):
        Plain(PasswordLogin("tim", Secret("hunter2"))).next(b"more")
