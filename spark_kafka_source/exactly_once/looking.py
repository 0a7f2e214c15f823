"""A worker's look at the brokers before its first transaction in a run.

It sees the epoch of the control id and the last decision. By either the run's driver proves that no
other driver has decided since. It commits what an earlier run has decided and not ended, before new
rows take their time.
"""

import logging
from typing import NamedTuple

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import BatchId, Decision, DecisionId
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.settling import settle_for_others
from spark_kafka_source.exactly_once.stories import (
    DescribeTransactions,
    FetchDecision,
    Story,
)
from spark_kafka_source.producer import ProducerId

logger = logging.getLogger(__name__)


class Seen(NamedTuple):
    """What a worker has seen of a prefix."""

    control: ProducerId | None = None
    """The control id's producer; None for a new id."""
    last: DecisionId | None = None
    """The last decision; None if there is none."""


def look(names: Names, batch: BatchId) -> Story[Seen]:
    """Look at the brokers, and commit what another run of the query has decided."""
    heard = yield (DescribeTransactions((names.control_id,)), FetchDecision())
    described, last = heard.answers
    control = described[names.control_id]
    if last is not None and _is_of_earlier_run(last, batch):
        try:
            yield from settle_for_others(last)
        except KafkaError as error:
            logger.warning("What is decided and not ended is left to the driver: %s", error)
    return Seen(control and control.producer, last and last.id)


def _is_of_earlier_run(last: Decision, batch: BatchId) -> bool:
    return last.batch.query_id == batch.query_id and last.batch.run_id != batch.run_id
