"""The commands `topics create`, `delete`, `alter` and `configs`."""

import json
from collections.abc import Callable

import pytest

from spark_kafka_source.command_line.main import main
from spark_kafka_source.protocol.declaration import Versions
from spark_kafka_source.protocol.messages.list_offsets import ListOffsetsRequest
from spark_kafka_source.testing.memory import MemoryBroker
from tests.admin.conftest import address, fill

pytestmark = pytest.mark.memory(nodes=2)

Run = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    fill(broker)
    return broker


@pytest.fixture
def run(broker: MemoryBroker, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command. It returns the exit code and all lines."""

    def run(*words: str) -> tuple[int, list[str]]:
        status = main([*words, "-b", address(broker)])
        shown = capsys.readouterr()
        return status, [*shown.out.splitlines(), *shown.err.splitlines()]

    return run


def test_topics_are_created(broker: MemoryBroker, run: Run) -> None:
    words = ("--partitions", "3", "--replication-factor", "2", "--set", "retention.ms=5")
    assert run("topics", "create", "a", "b", *words) == (
        0,
        ["TOPIC  CREATED", "a      yes", "b      yes"],
    )
    assert len(broker.cluster.topics["a"].logs) == 3
    assert broker.cluster.topic_settings["b"] == {"retention.ms": "5"}


def test_offsets_of_tiered_storage(broker: MemoryBroker, run: Run) -> None:
    """`tests/tiered_storage` asks for them where there is tiered storage."""
    broker.cluster.topics["t"].logs[1].log_start_offset = 2
    _, lines = run("topics", "t", "--tiered", "--json")
    names = ("latest", "earliest_local", "latest_tiered", "earliest_pending_upload")
    rows = [json.loads(each) for each in lines]
    assert [[row[name] for name in names] for row in rows] == [
        [3, 0, None, None],
        [5, 2, None, None],
    ]
    assert len(run("topics", "--tiered")[1]) == 4, "a header and all partitions"
    assert "earliest_local" not in run("topics", "t", "--json")[1][0]


def test_brokers_that_are_too_old_for_an_offset_of_tiered_storage(
    broker: MemoryBroker, run: Run
) -> None:
    broker.cluster.versions[ListOffsetsRequest.KEY] = Versions(1, 8)
    status, lines = run("topics", "t", "--tiered", "--json")
    assert status == 0
    row = json.loads(lines[0])
    assert (row["earliest_local"], row["latest_tiered"], row["earliest_pending_upload"]) == (
        0,
        None,
        None,
    )
    assert "Kafka 3.9 and newer" in lines[2]
    assert "Kafka 4.2 and newer" in lines[3]


def test_a_partition_without_a_leader_has_no_offset_in_tiered_storage(
    broker: MemoryBroker, run: Run
) -> None:
    broker.stop(1)
    status, lines = run("topics", "t", "--tiered", "--json")
    assert status == 0
    rows = [json.loads(each) for each in lines]
    assert [row["earliest_local"] for row in rows] == [0, None]


def test_a_topic_that_exists_is_a_failure_unless_said_otherwise(run: Run) -> None:
    status, lines = run("topics", "create", "t", "new", "--json")
    assert status == 1
    assert [json.loads(each) for each in lines] == [
        {
            "topic": "t",
            "created": False,
            "note": None,
            "error": "Topic 't' exists already: TOPIC_ALREADY_EXISTS (36)",
        },
        {"topic": "new", "created": True, "note": None, "error": None},
    ]
    assert run("topics", "create", "t", "--if-not-exists") == (
        0,
        ["TOPIC  CREATED  NOTE", "t      no       exists already"],
    )
    status, _ = run("topics", "create", "u", "--replication-factor", "9", "--if-not-exists")
    assert status == 0, "it exists"


def test_a_dry_run_creates_nothing(broker: MemoryBroker, run: Run) -> None:
    assert run("topics", "create", "a", "--dry-run") == (
        0,
        [
            "TOPIC  CREATED",
            "a      no",
            "Nothing was created: this was a dry run, and the brokers checked it",
        ],
    )
    assert "a" not in broker.cluster.topics
    assert run("topics", "create", "t", "--dry-run")[0] == 1


def test_topics_are_deleted(broker: MemoryBroker, run: Run) -> None:
    assert run("topics", "delete", "t") == (0, ["TOPIC  DELETED", "t      yes"])
    assert "t" not in broker.cluster.topics
    status, lines = run("topics", "delete", "t")
    assert status == 1
    assert "There is no topic 't'" in lines[1]
    assert run("topics", "delete", "t", "--if-exists") == (
        0,
        ["TOPIC  DELETED  NOTE", "t      no       does not exist"],
    )


def test_topics_are_altered(broker: MemoryBroker, run: Run) -> None:
    broker.cluster.topic_settings["t"] = {"segment.ms": "7"}
    words = ("--partitions", "4", "--set", "retention.ms=5", "--unset", "segment.ms")
    assert run("topics", "alter", "t", *words) == (0, ["TOPIC  ALTERED", "t      yes"])
    assert len(broker.cluster.topics["t"].logs) == 4
    assert run("topics", "configs", "t") == (
        0,
        [
            "TOPIC  NAME          VALUE  SOURCE",
            "t      retention.ms  5      DYNAMIC_TOPIC_CONFIG",
        ],
    )


def test_a_topic_of_which_a_part_is_refused_is_not_altered_at_all(
    broker: MemoryBroker, run: Run
) -> None:
    status, lines = run("topics", "alter", "t", "u", "--partitions", "2", "--set", "retention.ms=5")
    assert status == 1
    assert "INVALID_PARTITIONS" in lines[1]
    assert broker.cluster.topic_settings == {"u": {"retention.ms": "5"}}
    assert len(broker.cluster.topics["u"].logs) == 2


def test_a_dry_run_alters_nothing(broker: MemoryBroker, run: Run) -> None:
    status, lines = run(
        "topics", "alter", "t", "--partitions", "9", "--set", "retention.ms=5", "--dry-run"
    )
    assert (status, lines[1]) == (0, "t      no")
    assert len(broker.cluster.topics["t"].logs) == 2
    assert not broker.cluster.topic_settings.get("t")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["alter", "t"], "there is nothing to change. Give --partitions, --set or --unset"),
        (["create", "a", "--set", "retention.ms"], "'--set': found 'retention.ms'. Give 'name="),
        (["create", "a", "--config", "retention.ms=5"], "Give it by --set"),
        (["alter", "t", "--config", "cleanup.policy=compact"], "Give it by --set"),
        (["create", "a", "--set", "x=1", "--set", "x =2"], "'--set': 'x' is given twice"),
        (["alter", "t", "--set", "x=1", "--set", "x=1"], "'--set': 'x' is given twice"),
        (["alter", "t", "--set", "x=1", "--unset", "x"], "'--unset': 'x' is given by --set, too"),
        (["list"], "there is no topic and no action 'list'. To list all topics, give `topics`"),
        (["describe", "t"], "no action 'describe'. To describe topics, give `topics` and their"),
    ],
)
def test_wrong_arguments_are_told(run: Run, words: list[str], text: str) -> None:
    status, lines = run("topics", *words)
    assert status == 2
    assert text in lines[-1]


def test_a_topic_may_be_named_like_an_action(
    broker: MemoryBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topic("create")
    assert main(["topics", "-b", address(broker), "create"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "create"
