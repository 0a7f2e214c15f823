"""The scenarios of limits that `make parity` holds against the peer, with our format on each Spark.

The peer's answers are those of the Spark that it is published for. Each Spark must give the same.
"""

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.matrix.test_smoke import FROM_SPARK_4_2
from tests.parity.conftest import follow
from tests.parity.scenario import OURS, Source
from tests.parity.test_rate_limits import (
    test_a_micro_batch_is_split_into_min_partitions,
    test_the_greatest_limit_does_not_overflow,
    test_the_least_are_not_waited_for_longer_than_a_delay,
    test_the_least_are_waited_for,
    test_the_most_are_shared_out_in_proportion_also_after_a_restart,
    test_two_limited_sources_of_which_one_falls_idle,
)
from tools.traffic import Events

__all__ = [
    "follow",
    "test_a_micro_batch_is_split_into_min_partitions",
    "test_the_greatest_limit_does_not_overflow",
    "test_the_least_are_not_waited_for_longer_than_a_delay",
    "test_the_least_are_waited_for",
    "test_the_most_are_shared_out_in_proportion_also_after_a_restart",
    "test_two_limited_sources_of_which_one_falls_idle",
]

if FROM_SPARK_4_2:
    # Before, a run over what is available is one micro-batch, and so is a run of one trigger. What
    # these are there is in `test_limits.py`.
    from tests.parity.test_available_now import test_what_is_there_is_read_in_limited_batches
    from tests.parity.test_options import test_offsets_behind_the_latest
    from tests.parity.test_rate_limits import test_trigger_once_ignores_limits
    from tests.parity.test_transactions import test_limited_batches_of_what_is_committed, writer

    __all__ += [
        "test_limited_batches_of_what_is_committed",
        "test_offsets_behind_the_latest",
        "test_trigger_once_ignores_limits",
        "test_what_is_there_is_read_in_limited_batches",
        "writer",
    ]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    # Spark 4.0 leaves the sockets of rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed .socket:ResourceWarning"),
]


@pytest.fixture
def source(session: SparkSession) -> Source:
    """Return a source of our format."""
    return Source(session, OURS)


@pytest.fixture
def events(kafka: LocalKafka, topic: str) -> Events:
    """Return a topic of the newest Kafka: which one it is does not matter for limits."""
    return Events(kafka, topic)
