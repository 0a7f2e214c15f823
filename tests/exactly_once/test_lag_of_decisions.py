"""The group that keeps a query's decisions has no lag, and everything that shows groups says so."""

import json
import re
import uuid

import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.admin.committed import is_decision
from spark_kafka_source.command_line.main import main
from spark_kafka_source.exactly_once.decision import BatchId, Decision
from spark_kafka_source.exactly_once.names import Names, prefix_of_query
from spark_kafka_source.testing import LocalKafka
from tests.documentation.pages import DOCS
from tests.exactly_once.conftest import PARTITIONS, Trial
from tests.exactly_once.query import Query
from tests.exactly_once.test_decision import OF_0_3


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (Decision(BatchId("query", "run", 7), ()).parts()[0], True),
        (OF_0_3, True),
        # A later version of the package may add fields.
        (OF_0_3.replace('"v":1', '"v":3,"more":[]'), True),
        ("", False),
        ("of the query c0ffee, batch 7", False),
        ('{"batch":7}', False),
        ("{", False),
        ('{"v":' + "[" * 4_000, False),
    ],
    ids=["written", "0.3", "later", "none", "ours", "other JSON", "no JSON", "deep"],
)
def test_what_a_decision_is(metadata: str, expected: bool) -> None:
    assert is_decision(metadata) is expected


def check(query: Query, capsys: pytest.CaptureFixture[str], tasks: int, parts: int) -> None:
    run = query.start()
    for batch_id in range(2):
        run.commit(batch_id, run.write(batch_id, tasks))
    consumers = f"{query.prefix}-consumers"
    keepers = {query.names.group_id(part) for part in range(parts)}
    with KafkaAdmin(bootstrap_servers=query.servers) as admin:
        admin.reset_offsets(consumers, 1, [query.where], dry_run=False)
        found = admin.group_lag(*keepers, consumers)
        theirs = next(each for each in found if each.group_id == consumers)
        assert found.total == theirs.lag
        assert theirs.lag is not None
        assert theirs.lag > 0
        assert not theirs.keeps_decision
        for row in found:
            if row is not theirs:
                assert (row.keeps_decision, row.lag, row.committed_offset) == (True, None, 1)
        marked = found.to_arrow()
        assert marked.column("keeps_decision").to_pylist().count(True) == len(keepers)

    words = ["-b", query.servers]
    assert main(["groups", "describe", min(keepers), *words]) == 0
    assert "lag:         -" in capsys.readouterr().out.splitlines()
    assert main(["groups", "describe", min(keepers), "--json", *words]) == 0
    assert json.loads(capsys.readouterr().out)["lag"] is None
    assert main(["groups", "lag", *words]) == 0
    shown = capsys.readouterr().out.splitlines()
    for each in keepers:
        (line,) = [line for line in shown if line.startswith(f"{each} ")]
        assert line.endswith(
            "no lag: 'committed' is a micro-batch that an exactly-once query has decided"
        )
    assert main(["groups", "list", "--json", *words]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    notes = {row["group"]: row["note"] for row in rows}
    assert notes[consumers] is None
    assert {notes[each] for each in keepers} == {"keeps the decisions of an exactly-once query"}
    for each in (query.prefix, consumers):
        assert main(["groups", "reset", each, "--to-latest", *words]) == 0
        warned = "This group keeps the decisions" in capsys.readouterr().err
        assert warned == (each in keepers)


def test_in_memory(in_memory: Trial, capsys: pytest.CaptureFixture[str]) -> None:
    check(in_memory.query, capsys, tasks=120, parts=2)


@pytest.mark.kafka
def test_on_a_real_broker(
    kafka: LocalKafka, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.create_topic(topic, PARTITIONS)
    check(Query(kafka.bootstrap_servers, topic, PARTITIONS), capsys, tasks=2, parts=1)


def test_a_group_that_only_looks_like_one_has_its_lag(in_memory: Trial) -> None:
    """The name says nothing: a group of consumers may be called so, too."""
    query = in_memory.query
    run = query.start()
    run.commit(0, run.write(0))
    with KafkaAdmin(bootstrap_servers=query.servers) as admin:
        name = f"pykafka-{query.query_id}"
        admin.reset_offsets(name, {query.where: 1}, dry_run=False)
        (row,) = admin.group_lag(name)
    assert not row.keeps_decision
    assert row.lag is not None


def test_what_the_page_excludes_is_the_groups_of_decisions() -> None:
    query_id = str(uuid.uuid4())
    keepers = [Names(prefix_of_query(query_id)).group_id(part) for part in (0, 1, 12)]
    text = (DOCS / "monitoring.md").read_text()
    (default,) = re.findall(r"^\^pykafka-.*$", text, re.MULTILINE)
    own, both = re.findall(r"`(\^\(.*)`", text)
    for each in keepers:
        assert re.search(default, each)
        assert re.search(both, each)
    for each in ("invoices", "refunds.1"):
        assert re.search(own, each)
        assert re.search(both, each)
    others = ["pykafka-billing", f"{keepers[0]}-more", f"{keepers[0]}.x", "invoices-eu", "billing"]
    assert not [each for each in others if re.search(f"{default}|{own}|{both}", each)]
