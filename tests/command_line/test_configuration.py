"""`client.properties` as Java reads it."""

import pytest

from spark_kafka_source.command_line.arguments import parse
from spark_kafka_source.command_line.configuration import configuration, properties
from spark_kafka_source.secret import Secret


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", [("a", "b")]),
        ("  a  =  b c ", [("a", "b c ")]),
        ("a:b", [("a", "b")]),
        ("a b=c", [("a", "b=c")]),
        ("a", [("a", "")]),
        ("a=", [("a", "")]),
        ("# a=b\n! c=d\n\n\te=f", [("e", "f")]),
        ("a=b\\\n   c\\\n# d", [("a", "bc# d")]),
        ("a=b\\\\\nc=d", [("a", "b\\"), ("c", "d")]),
        ("a=\\u0041\\n\\t\\=\\x", [("a", "A\n\t=x")]),
        ("a\\=b\\:c=d", [("a=b:c", "d")]),
        ("a=b\r\nc=d\re=f", [("a", "b"), ("c", "d"), ("e", "f")]),
        ("a=b\\", [("a", "b")]),
        ("a==b", [("a", "=b")]),
        ("", []),
    ],
)
def test_properties(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(properties(text)) == expected


def test_every_value_is_a_secret_and_no_group_is_known() -> None:
    given = parse(
        ["topics", "--config", "sasl.password=a=b", "--config", "group_id=g", "-b", "a:1"]
    )
    found = configuration(given)
    assert found == {"sasl.password": Secret("a=b"), "bootstrap.servers": "a:1"}
    assert "a=b" not in repr(found)
