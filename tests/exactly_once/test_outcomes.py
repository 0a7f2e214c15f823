"""The outcome of a decided transaction, from the last one under its id."""

import pytest

from spark_kafka_source.admin.transactions import TransactionDescription
from spark_kafka_source.exactly_once import Winner
from spark_kafka_source.exactly_once.endings import Outcome, outcome
from spark_kafka_source.producer import ProducerId

WINNER = Winner("p.run.1.2", ProducerId(7, 4), 1_000)


@pytest.mark.parametrize(
    ("state", "producer", "started_at_ms", "expected"),
    [
        # The first generation.
        ("Ongoing", (7, 4), 1_000, Outcome.OPEN),
        ("PrepareCommit", (7, 4), 1_000, Outcome.COMMITTED),
        ("CompleteCommit", (7, 4), 1_000, Outcome.COMMITTED),
        ("CompleteAbort", (7, 4), 1_000, Outcome.ABORTED),
        ("CompleteAbort", (7, 5), 1_000, Outcome.ABORTED),
        ("Empty", (7, 5), -1, Outcome.COMMITTED),
        # The second one.
        ("CompleteCommit", (7, 5), 1_000, Outcome.COMMITTED),
        ("PrepareAbort", (7, 5), 1_000, Outcome.ABORTED),
        # Kafka 4.0.0 raises the epoch twice when a transaction times out.
        ("CompleteAbort", (7, 6), 1_000, Outcome.ABORTED),
        # The worker went on.
        ("Ongoing", (7, 5), 1_500, Outcome.COMMITTED),
        ("CompleteAbort", (7, 6), 1_500, Outcome.COMMITTED),
        ("Ongoing", (8, 0), 1_500, Outcome.COMMITTED),
        # The brokers have lost it, and tell what was before.
        ("CompleteCommit", (7, 4), 500, Outcome.UNKNOWN),
        ("Empty", (7, 4), -1, Outcome.UNKNOWN),
        ("Ongoing", (7, 3), 500, Outcome.UNKNOWN),
    ],
)
def test_the_last_transaction_tells_it(
    state: str, producer: tuple[int, int], started_at_ms: int, expected: Outcome
) -> None:
    name, of = WINNER.transactional_id, ProducerId(*producer)
    found = TransactionDescription(name, state, of, 60_000, started_at_ms, (), 0)
    assert outcome(WINNER, found) is expected


def test_an_id_that_brokers_do_not_know_tells_nothing() -> None:
    assert outcome(WINNER, None) is Outcome.UNKNOWN
