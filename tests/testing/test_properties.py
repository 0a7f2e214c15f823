"""A broker's properties: the needs of its cluster, overridden by the caller's properties."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.testing import ports
from spark_kafka_source.testing.ports import free_ports
from spark_kafka_source.testing.properties import Node, broker_properties, escape
from tests.testing.processes import TIMEOUT_SECONDS, running_python

NODES = [Node(1, 101, 102, 103), Node(2, 201, 202, 203), Node(3, 301, 302, 303)]
ESCAPED = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")
PAIR = re.compile(r"((?:\\.|[^\\=])*)=(.*)")
LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
# A lone surrogate is no character, and cannot be in a file.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def read(text: str) -> dict[str, str]:
    """Parse properties like Java: the last value of a name wins."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = [PAIR.fullmatch(line) for line in lines]
    return {unescape(pair[1]): unescape(pair[2]) for pair in pairs if pair}


def unescape(text: str) -> str:
    units = ESCAPED.sub(_character, text)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


def _character(escaped: re.Match[str]) -> str:
    if escaped[1]:
        return chr(int(escaped[1], 16))
    return LETTERS.get(escaped[2], escaped[2])


def properties(brokers: int, **overrides: str) -> dict[str, str]:
    return read(broker_properties(NODES[0], NODES[:brokers], Path("/a b/data"), overrides))


@given(TEXT)
def test_what_is_escaped_is_ascii_on_one_line_and_reads_as_it_was(text: str) -> None:
    escaped = escape(text)
    assert escaped.isascii()
    assert len(escaped.splitlines()) <= 1
    assert unescape(escaped) == text


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=3))
def test_what_the_caller_gives_goes_before_the_template(overrides: dict[str, str]) -> None:
    overrides = {**overrides, "node.id": "77"}
    found = read(broker_properties(NODES[0], NODES, Path("/data"), overrides))
    assert overrides.items() <= found.items()
    assert found["process.roles"] == "broker,controller"


def test_each_listener_has_its_port_on_the_loopback() -> None:
    assert properties(1)["listeners"] == (
        "CLIENT://127.0.0.1:101,INTERNAL://127.0.0.1:102,CONTROLLER://127.0.0.1:103"
    )
    assert properties(1)["log.dirs"] == "/a b/data"


@pytest.mark.parametrize(
    ("brokers", "voters"),
    [(1, "1@127.0.0.1:103"), (3, "1@127.0.0.1:103,2@127.0.0.1:203,3@127.0.0.1:303")],
)
def test_every_broker_votes(brokers: int, voters: str) -> None:
    assert properties(brokers)["controller.quorum.voters"] == voters


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "1")])
def test_replicas_fit_the_number_of_brokers(brokers: int, replicas: str, in_sync: str) -> None:
    found = properties(brokers)
    factors = {key: found[key] for key in found if key.endswith("replication.factor")}
    assert len(factors) == 4
    assert set(factors.values()) == {replicas}
    assert {found[key] for key in found if key.endswith(("min.isr", "insync.replicas"))} == {
        in_sync
    }


def test_no_more_than_three_replicas_of_which_one_may_fail() -> None:
    text = broker_properties(NODES[0], [*NODES, *NODES], Path("/data"), {})
    found = read(text)
    assert found["default.replication.factor"] == "3"
    assert found["min.insync.replicas"] == "2"


def test_a_broker_in_a_rack_sends_readers_to_the_replica_in_theirs() -> None:
    in_rack = read(broker_properties(replace(NODES[0], rack="zone a"), NODES, Path("/data"), {}))
    assert in_rack["broker.rack"] == "zone a"
    assert in_rack["replica.selector.class"].endswith(".RackAwareReplicaSelector")
    assert not {"broker.rack", "replica.selector.class"} & properties(1).keys()


def test_free_ports_differ_and_are_none_that_a_connection_goes_out_by() -> None:
    found = free_ports(50)
    assert len(set(found)) == 50
    assert all(1024 < port < 32768 for port in found)


TAKES_PORTS = """
import sys
from spark_kafka_source.testing import ports
ports._PORTS = range(*map(int, sys.argv[1:]))
print(*ports.free_ports(20), flush=True)
sys.stdin.read()
"""


def test_nobody_gets_a_port_before_its_server_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process gets none of them, nor does this one a second time."""
    few = range(20_000, 20_060)
    monkeypatch.setattr(ports, "_PORTS", few)
    first = free_ports(20)
    words = ("-c", TAKES_PORTS, str(few.start), str(few.stop))
    with running_python(*words, timeout_seconds=TIMEOUT_SECONDS) as other:
        assert other.stdout is not None
        theirs = {int(each) for each in other.stdout.readline().split()}
        rest = free_ports(len(few))
    assert theirs
    assert theirs.isdisjoint({*first, *rest})
    assert set(first).isdisjoint(rest)


def test_a_process_gives_its_first_ports_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_PORTS", range(20_100, 20_200))
    monkeypatch.setattr(ports, "_MOST_TAKEN", 3)
    monkeypatch.setattr(ports, "_taken", {})
    found = [free_ports(2) for _ in range(5)]
    assert list(ports._taken) == [*found[-2][1:], *found[-1]]
