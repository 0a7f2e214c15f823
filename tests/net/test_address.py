"""Users' values of `kafka.bootstrap.servers`."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import Address, parse_addresses

HOSTS = st.text(string.ascii_letters + string.digits + ".-", min_size=1) | st.ip_addresses().map(
    str
)


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("broker1:9092", [("broker1", 9092)]),
        (" a:1 , b:2 ,", [("a", 1), ("b", 2)]),
        ("a:1,b:2,a:1", [("a", 1), ("b", 2)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("PLAINTEXT://a.example.org:65535", [("a.example.org", 65535)]),
    ],
)
def test_addresses_are_read_in_order_and_once(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_addresses(text) == tuple(Address(*each) for each in addresses)


@pytest.mark.parametrize(
    "text",
    ["", " , ", "a", "a:", ":1", "a:0", "a:65536", "a:-1", "a:1x", "::1:9092", "a b:1", "a:\u0661"],
)
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap\.servers.*host:port"):
        parse_addresses(text)


@given(st.lists(st.builds(Address, HOSTS, st.integers(1, 65535)), min_size=1, unique=True))
def test_printed_addresses_are_read_back(addresses: list[Address]) -> None:
    assert parse_addresses(",".join(map(str, addresses))) == tuple(addresses)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_addresses(text)
    except ConfigurationError as error:
        assert "kafka.bootstrap.servers" in str(error)
