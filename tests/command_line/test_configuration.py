"""`client.properties` has the same meaning as in Java."""

from pathlib import Path

import pytest

from spark_kafka_source.command_line.arguments import parse
from spark_kafka_source.command_line.configuration import configuration, properties, spelling
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


@pytest.mark.parametrize(
    "lines",
    [
        "ssl.keystore.key=-----BEGIN PRIVATE KEY-----\nMIGHAgEAcanary\nZajo/canary+=\n"
        "canary==\n-----END PRIVATE KEY-----\n",
        "sasl.password=\ncanary\n",
        "sasl.password=\n  a.canary word\n  canary.b\n"
        "  Canary.c=d\n  eyJcanary.eyJcanary.x_canary=\n",
    ],
)
def test_a_line_that_may_be_a_secret_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"fetch.min.bytes=1\nacks=1\n{lines}")
    configuration(parse(["tail", "t", "-b", "a:1", "--config-file", str(file)]))
    error = capsys.readouterr().err
    assert "canary" not in error.replace("a.canary", "").lower()
    assert f"Options without effect here, in {file}: acks" in error
    assert f"Lines that are no 'name=value', in {file}: " in error
    assert r"needs '\n\' at the end of each line" in error


def test_a_producer_says_itself_that_it_is_in_no_group() -> None:
    words = ["--config", "group.id=g", "--config", "acks=1", "--config", "ssl.key.pasword=x"]
    given = parse(["produce", "t", "-b", "a:1", *words])
    assert configuration(given)["group.id"] == Secret("g")
    assert configuration(given)["acks"] == Secret("1")
    assert spelling(given)["kafka.ssl.key.pasword"] == "ssl.key.pasword"


def test_a_file_may_be_for_all_kinds_of_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=1\ngroup.id=g\nfetch.min.bytes=2\nlinger.ms=3\n")
    of_both = {}
    for command in (["produce", "t"], ["tail", "t"]):
        given = parse([*command, "-b", "a:1", "--config-file", str(file)])
        of_both[command[0]] = configuration(given).keys() - {"bootstrap.servers"}
    assert of_both == {"produce": {"acks", "linger.ms"}, "tail": {"fetch.min.bytes"}}
    assert capsys.readouterr().err.splitlines() == [
        f"Options without effect here, in {file}: group.id, fetch.min.bytes",
        f"Options without effect here, in {file}: acks, linger.ms",
    ]
