"""A worker's look at the brokers before its first transaction in a run.

The worker sees the epoch of the control id, and the last decisions. Each of the two can prove to
the run's driver that no other driver has decided since. The worker commits what an earlier run has
decided and not ended, before new rows take their time.
"""

import logging
from typing import NamedTuple

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import BatchId, DecisionId
from spark_kafka_source.exactly_once.lasts import Lasts
from spark_kafka_source.exactly_once.names import Names
from spark_kafka_source.exactly_once.settling import settle_for_others
from spark_kafka_source.exactly_once.stories import (
    DescribeTransactions,
    FetchDecisions,
    Story,
)
from spark_kafka_source.producer import ProducerId

logger = logging.getLogger(__name__)


class Seen(NamedTuple):
    """What a worker has seen of a prefix."""

    control: ProducerId | None = None
    """The control id's producer; None for a new id."""
    lasts: frozenset[DecisionId] = frozenset()
    """The decisions about the latest micro-batch."""


def look(names: Names, batch: BatchId) -> Story[Seen]:
    """Look at the brokers, and commit what another run of the query has decided."""
    heard = yield (DescribeTransactions((names.control_id,)), FetchDecisions())
    described, lasts = heard.answers
    control = described[names.control_id]
    try:
        yield from _end_earlier(lasts, batch)
    except KafkaError as error:
        logger.warning("What is decided and not ended is left to the driver: %s", error)
    return Seen(control and control.producer, frozenset(each.id for _, each in lasts.latest()))


def _end_earlier(lasts: Lasts, batch: BatchId) -> Story[None]:
    for _, each in lasts.latest():
        if each.batch.query_id == batch.query_id and each.batch.run_id != batch.run_id:
            yield from settle_for_others(each)
