"""The commands, each in both output forms. Errors are one line and an exit code."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.command_line.main import main
from spark_kafka_source.records import Record
from spark_kafka_source.testing.memory import MemoryBroker
from tests.admin.conftest import T0, T1, U0, address, fill
from tests.groups.members import member

pytestmark = pytest.mark.memory(nodes=2)

NOON_MS = 1_777_896_000_000
Run = Callable[..., int]
Expected = set[tuple[int, int]]


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    fill(broker)
    return broker


@pytest.fixture
def run(broker: MemoryBroker) -> Run:
    def run(*words: str) -> int:
        return main([*words, "--bootstrap-servers", address(broker)])

    return run


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    def lines() -> list[str]:
        return capsys.readouterr().out.splitlines()

    return lines


@pytest.fixture
def documents(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[Any]]:
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


Lines = Callable[[], list[str]]
Documents = Callable[[], list[Any]]


def test_groups_list(run: Run, lines: Lines, documents: Documents) -> None:
    assert run("groups", "list") == 0
    assert lines() == ["GROUP  TYPE     STATE", "g      classic  Empty", "h      classic  Empty"]
    assert run("groups", "list", "--json", "--state", "Stable") == 0
    assert documents() == []
    assert run("groups", "list", "--json", "--type", "classic") == 0
    assert documents()[0] == {
        "group": "g",
        "type": "classic",
        "state": "Empty",
        "protocol": "",
        "note": None,
    }


def test_where_there_is_nothing_it_says_so(
    broker: MemoryBroker, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", "list", "--state", "Stable") == 0
    assert capsys.readouterr() == ("", "There is no group of such a state and type\n")
    broker.cluster.committed.clear()
    broker.cluster.topics.clear()
    for words, note in (
        (["groups", "list"], "There are no groups\n"),
        (["groups", "lag"], "No group has offsets\n"),
        (["topics"], "There are no topics\n"),
    ):
        for form in ([], ["--json"]):
            assert run(*words, *form) == 0
            assert capsys.readouterr() == ("", note)


def test_groups_lag(run: Run, lines: Lines, documents: Documents) -> None:
    assert run("groups", "lag", "g") == 0
    assert lines() == [
        "TOPIC  PARTITION  COMMITTED  END  LAG",
        "t              0          1    3    2",
        "u              0          1    1    0",
    ]
    assert run("groups", "lag") == 0
    assert lines()[0].split()[0] == "GROUP"
    assert run("groups", "lag", "h", "--json") == 0
    (row,) = documents()
    assert (row["group"], row["start"], row["end"], row["lag"]) == ("h", 0, 5, 1)


def test_groups_describe(
    broker: MemoryBroker, run: Run, lines: Lines, documents: Documents
) -> None:
    with member(broker, "t") as one:
        one.settle(T0, T1)
        assert run("groups", "describe", "g") == 0
        assert lines() == [
            "group:       g",
            "type:        classic",
            "state:       Stable",
            "assignor:    deal",
            f"coordinator: 1 ({broker.address(1)})",
            "members:     1",
            "lag:         2",
            "",
            "CLIENT  HOST        PARTITIONS  MEMBER",
            "client  /127.0.0.1  t:0,1       member-0",
            "",
            "TOPIC  PARTITION  COMMITTED  END  LAG  CLIENT  HOST",
            "t              0          1    3    2  client  /127.0.0.1",
            "t              1          -    5    -  client  /127.0.0.1",
            "u              0          1    1    0  -       -",
        ]
        assert run("groups", "describe", "g", "--json") == 0
        (found,) = documents()
        assert found["members"][0]["partitions"] == [
            {"topic": "t", "partition": 0},
            {"topic": "t", "partition": 1},
        ]
        assert [row["lag"] for row in found["partitions"]] == [2, None, 0]


def test_one_group_that_is_not_there_does_not_hide_the_others(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", "describe", "nope", "g") == 1
    shown = capsys.readouterr()
    assert "group:       g" in shown.out
    assert shown.err == "There is no group 'nope'\n"
    assert run("groups", "lag", "nope", "g") == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1] == "g      t              0          1    3    2"
    assert shown.err == "There is no group 'nope'\n"
    assert run("groups", "lag", "nope") == 1
    assert capsys.readouterr() == ("", "There is no group 'nope'\n")


def test_groups_reset(
    broker: MemoryBroker, run: Run, documents: Documents, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("groups", "reset", "g", "--to-latest", "--topic", "t:1", "--topic", "u") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "TOPIC  PARTITION  OLD  NEW  CHANGE",
        "t              1    -    5       -",
        "u              0    1    1       0",
    ]
    assert "dry run; add --execute" in shown.err
    assert broker.cluster.committed["g"] == {T0: 1, U0: 1}
    assert run("groups", "reset", "g", "--shift-by", "-1", "--execute", "--json") == 0
    assert [(row["old"], row["new"], row["executed"]) for row in documents()] == [
        (1, 0, True),
        (1, 0, True),
    ]
    assert broker.cluster.committed["g"] == {T0: 0, U0: 0}
    assert run("groups", "reset", "g", "--to-offset", "9", "--topic", "t:0") == 0
    assert "9 is after the end of the log" in capsys.readouterr().out
    assert run("groups", "reset", "nope", "--to-earliest") == 1
    assert "Nothing to reset" in capsys.readouterr().err
    assert run("groups", "reset", "nope", "--to-earliest", "--topic", "u") == 0
    assert "There was no group 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--to-datetime", "yesterday"],
        ["--by-duration", "1h"],
        ["--to-latest", "--topic", "t:x"],
        ["--to-latest", "--config", "oops"],
        ["--to-latest", "--config", "columns=x"],
        ["--to-latest", "--config", "foo.bar=hunter2"],
        ["--to-latest", "--config-file", "/nowhere/to/be/found"],
    ],
)
def test_what_is_not_said_right_is_one_line_and_2(
    broker: MemoryBroker, run: Run, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run("groups", "reset", "g", *words) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert shown.err.startswith("spark-kafka-source: Option ")
    assert shown.err.count("\n") == 1
    assert "hunter2" not in shown.err


def test_groups_delete(broker: MemoryBroker, run: Run, lines: Lines) -> None:
    assert run("groups", "delete", "g", "--topic", "u", "--topic", "t:0,1") == 0
    assert lines()[1:] == [
        "g      t              0  yes",
        "g      t              1  yes",
        "g      u              0  yes",
    ]
    assert broker.cluster.committed["g"] == {}
    assert run("groups", "delete", "h", "nope") == 1
    assert lines() == [
        "GROUP  DELETED  ERROR",
        "h      yes      -",
        "nope   no       There is no group 'nope'",
    ]
    assert run("groups", "delete", "nope", "--topic", "t:0") == 1


def test_topics(broker: MemoryBroker, run: Run, lines: Lines, documents: Documents) -> None:
    assert run("topics") == 0
    assert lines()[1].split() == ["t", "2", "1", "0", "0", "no"]
    assert run("topics", "t") == 0
    assert lines() == [
        "TOPIC  PARTITION  LEADER  REPLICAS  ISR  EARLIEST  LATEST",
        "t              0       0  0         0           0       3",
        "t              1       1  1         1           0       5",
    ]
    assert run("topics", "--partitions", "--json") == 0
    assert [(row["topic"], row["isr"]) for row in documents()] == [
        ("t", [0]),
        ("t", [1]),
        ("u", [0]),
    ]
    assert run("topics", "nope") == 1


@pytest.fixture
def timed(broker: MemoryBroker) -> MemoryBroker:
    """Write eight records a minute apart to two partitions in turn, with odd contents."""
    logs = broker.create_topic("timed", 2)
    for minute in range(8):
        value = b'{"n": %d}' % minute if minute < 6 else b"\x1b[2J\xff"
        at_ms = NOON_MS + minute * 60_000
        headers = [("h", b"1")] if minute == 7 else []
        logs[minute % 2].append(Record(value=value, key=b"k", timestamp_ms=at_ms, headers=headers))
    return broker


def offsets(documents: list[Any]) -> list[tuple[int, int]]:
    return [(each["partition"], each["offset"]) for each in documents]


def test_tail_shows_the_newest_in_order_of_time(
    run: Run, lines: Lines, timed: MemoryBroker
) -> None:
    assert run("tail", "timed", "-n", "3") == 0
    assert lines() == [
        '1:2  2026-05-04T12:05:00.000Z  k  {"n": 5}',
        r"0:3  2026-05-04T12:06:00.000Z  k  \x1b[2J\xff",
        r"1:3  2026-05-04T12:07:00.000Z  k  \x1b[2J\xff  h=1",
    ]


def test_tail_looks_further_back_where_offsets_have_no_records(
    broker: MemoryBroker, run: Run, documents: Documents
) -> None:
    (log,) = broker.create_topic("sparse")
    for base_offset in (0, 7, 500):
        log.append(b"x", base_offset=base_offset)
    log.append_marker(producer_id=1, commit=True)
    assert run("tail", "sparse", "-n", "2", "--json") == 0
    assert offsets(documents()) == [(0, 7), (0, 500)]
    assert run("tail", "sparse", "--json") == 0
    assert offsets(documents()) == [(0, 0), (0, 7), (0, 500)]


def test_tail_as_json(run: Run, documents: Documents, timed: MemoryBroker) -> None:
    assert run("tail", "timed", "-n", "3", "--json", "--value", "json", "--key", "hex") == 0
    first, _, last = documents()
    assert first == {
        "topic": "timed",
        "partition": 1,
        "offset": 2,
        "timestamp": "2026-05-04T12:05:00.000Z",
        "key": "6b",
        "key_base64": "aw==",
        "value": {"n": 5},
        # `produce` writes it without the space.
        "value_base64": base64.b64encode(b'{"n": 5}').decode(),
        "headers": [],
    }
    assert last["value"] == "\x1b[2J\\xff"


@pytest.mark.parametrize("form", ["text", "json"])
def test_tail_shows_what_is_no_text_in_base64_too(
    broker: MemoryBroker, run: Run, documents: Documents, form: str
) -> None:
    record = Record(key=b"\xfe", value=b"\xff", headers=[("h", b"\xfd"), ("i", b"\\xfd")])
    broker.create_topic("binary")[0].append(record)
    assert run("tail", "binary", "--json", "--key", form, "--value", form) == 0
    assert run("tail", "binary", "--json", "--key", "hex", "--value", "hex") == 0
    shown, in_hex = documents()
    assert shown["key"] == "\\xfe"
    assert base64.b64decode(shown["key_base64"]) == b"\xfe"
    assert base64.b64decode(shown["value_base64"]) == b"\xff"
    assert shown["headers"] == [
        {"key": "h", "value": "\\xfd", "value_base64": base64.b64encode(b"\xfd").decode()},
        {"key": "i", "value": "\\xfd"},
    ]
    assert (in_hex["key"], in_hex["value"]) == ("fe", "ff")
    assert (in_hex["key_base64"], in_hex["value_base64"]) == ("/g==", "/w==")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--from", "earliest"], {(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)}),
        (["--from", "latest"], set()),
        (["--from", "-1"], {(0, 3), (1, 3)}),
        (["--from", "2026-05-04T12:06"], {(0, 3), (1, 3)}),
        (["--from", "2026-05-04T14:06+02:00"], {(0, 3), (1, 3)}),
        (["--from", str(NOON_MS + 7 * 60_000)], {(1, 3)}),
        (["--from", "2100-01-01"], set()),
        (["--from", "earliest", "--partition", "1", "-n", "2"], {(1, 0), (1, 1)}),
        (["--group", "reader"], {(0, 3), (1, 0), (1, 1), (1, 2), (1, 3)}),
        (["-n", "100", "--partition", "0"], {(0, 0), (0, 1), (0, 2), (0, 3)}),
    ],
)
def test_tail_begins_where_it_is_told(
    run: Run, documents: Documents, timed: MemoryBroker, words: list[str], expected: Expected
) -> None:
    timed.cluster.committed["reader"] = {T0._replace(topic="timed"): 3, U0: 1}
    assert run("tail", "timed", "--json", *words) == 0
    assert sorted(offsets(documents())) == sorted(expected)
    assert not timed.cluster.groups


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["timed", "--from", "yesterday"], 2),
        (["timed", "--from", "1700000000"], 2),
        (["timed", "--from", "current"], 2),
        (["timed", "--partition", "9"], 2),
        (["nope"], 1),
    ],
)
def test_tail_refuses(
    run: Run, timed: MemoryBroker, words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("tail", *words) == status
    assert capsys.readouterr().err.count("\n") == 1


def test_the_configuration_may_come_from_a_file(
    broker: MemoryBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers = {address(broker)}\nacks=all\ngroup.id=g\n")
    assert main(["groups", "list", "--config-file", str(file)]) == 0
    assert capsys.readouterr().err == f"Options without effect here, in {file}: acks\n"
    file.write_text(f"bootstrap.servers={address(broker)}\nsasl.jaas.cnfig=hunter2\n")
    assert main(["groups", "list", "--config-file", str(file)]) == 2
    error = capsys.readouterr().err
    assert "Did you mean 'sasl.jaas.config'" in error
    assert "hunter2" not in error


def test_a_full_disk_is_one_line() -> None:
    program = [sys.executable, "-m", "spark_kafka_source", "doctor", "-b", "127.0.0.1:1"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "spark-kafka-source: [Errno 28] No space left on device\n"


def test_nobody_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--config", "request.timeout.ms=100"]
    assert main(["groups", "list", "-b", "127.0.0.1:1", *quick]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "No broker of '-b' could be reached" in error
    assert main(["groups", "list", "--config", "bootstrap.servers=127.0.0.1:1", *quick]) == 1
    assert "No broker of 'bootstrap.servers' could be reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["topics"], "Option '-b': is missing"),
        (["topics", "-b", "x"], "Option '-b': 'x' is"),
        (["topics", "-b", "a:1", "--config", "isolation.level=x"], "Option 'isolation.level': fou"),
        (
            ["groups", "reset", "g", "-b", "a:1", "--by-duration", "1h"],
            "Option '--by-duration': found '1h'. Give",
        ),
        (
            ["groups", "reset", "g", "-b", "a:1", "--to-datetime", "noon"],
            "Option '--to-datetime': found 'noon'. Give",
        ),
        (
            ["groups", "reset", "g", "-b", "a:1", "--to-datetime", "1700000000"],
            "Option '--to-datetime': found '1700000000'. For this time in seconds write "
            "'2023-11-14T22:13:20.000Z'",
        ),
        (
            ["groups", "reset", "g", "-b", "a:1", "--to-datetime", "20260504"],
            "Option '--to-datetime': found '20260504'. For this date write '2026-05-04Z'",
        ),
        (
            ["groups", "reset", "g", "-b", "a:1", "--to-datetime", "1712101112345"],
            "Option '--to-datetime': found '1712101112345'. For this time in milliseconds "
            "write '2024-",
        ),
    ],
)
def test_an_error_names_what_was_written(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"spark-kafka-source: {error}")


@pytest.mark.parametrize("words", [["topics", "nope"], ["tail", "nope"]])
def test_a_topic_that_there_is_not_is_a_sentence(
    run: Run, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 1
    assert capsys.readouterr().err == (
        "spark-kafka-source: There is no topic 'nope', or this user may not see it: "
        "UNKNOWN_TOPIC_OR_PARTITION (3)\n"
    )
