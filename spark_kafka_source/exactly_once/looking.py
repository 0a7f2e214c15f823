"""A worker's look at the brokers before its first transaction in a run.

It sees the epoch of the control id, by which the run's driver proves that no other driver has come
since. It commits what an earlier run has decided and not ended, before new rows take their time.
"""

from spark_kafka_source.admin.transactions import ONGOING
from spark_kafka_source.exactly_once.decision import BatchId
from spark_kafka_source.exactly_once.lasts import Lasts
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.settling import settle_for_others
from spark_kafka_source.exactly_once.stories import (
    DescribeTransactions,
    EndTxn,
    FetchDecisions,
    Pause,
    Story,
    ask,
)
from spark_kafka_source.producer import ProducerId

LOOKS = 20
_PAUSE_SECONDS = 0.1


def seen_at_rest(names: Names, looks: int = LOOKS) -> Story[ProducerId | None]:
    """Return the control id's producer while no decision is about to be made; None for a new id.

    A driver decides within milliseconds. One that is still at it after so many looks, of 0.1 s
    each, is dead or stands still, and its decision is aborted. Transactions that begin after this
    look cannot be in a list that an earlier driver made before its decision.
    """
    while True:
        described = yield from ask(DescribeTransactions((names.control_id,)))
        found = described[names.control_id]
        if found is None or found.state != ONGOING:
            return None if found is None else found.producer
        looks -= 1
        if looks > 0:
            yield from ask(Pause(_PAUSE_SECONDS))
        else:
            yield from ask(EndTxn(names.control_id, found.producer, commit=False))


def end_earlier(batch: BatchId) -> Story[None]:
    """Commit what another run of the query has decided, and what is still open."""
    lasts: Lasts = yield from ask(FetchDecisions())
    for _, each in lasts.latest():
        if each.batch.query_id == batch.query_id and each.batch.run_id != batch.run_id:
            yield from settle_for_others(each)
