"""Options that do nothing here, and why: a warning, since a query may well work without them.

https://kafka.apache.org/documentation/#consumerconfigs
"""

import difflib
import logging
from collections.abc import Collection

from spark_kafka_source.consumer.without_effect import WITHOUT_EFFECT, by_option

logger = logging.getLogger(__name__)

# Refused, not ignored, but for those with a reason.
_SECURITY = ("kafka.sasl.", "kafka.ssl.")

REASONS = {
    **WITHOUT_EFFECT,
    **by_option(
        {
            "the group has no members, as Spark plans the partitions": """
                group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
                max.poll.interval.ms partition.assignment.strategy session.timeout.ms
                """,
            "with 'kafka.group.id' each finished micro-batch is committed": (
                "auto.commit.interval.ms"
            ),
            "records are not polled one by one; use 'maxOffsetsPerTrigger' or "
            "'maxRecordsPerPartition'": "max.poll.records",
            "'subscribePattern' leaves internal topics out": "exclude.internal.topics",
            "the figures are in Spark's progress and `LagListener`": """
                enable.metrics.push metric.reporters metrics.num.samples metrics.recording.level
                metrics.sample.window.ms
                """,
        }
    ),
}
"""Why a setting of Kafka's clients does nothing here, by the name of its option."""


def warn_of_options_without_effect(given: Collection[str], read: Collection[str]) -> None:
    """Warns of what is `given`, in lower case, and not `read`: why, or what may have been meant."""
    nearest = {each.lower().removeprefix("kafka."): each for each in read}
    for name in sorted(set(given) - {each.lower() for each in read}):
        reason = REASONS.get(name)
        if reason is None and name.startswith(_SECURITY):
            continue
        close = difflib.get_close_matches(name.removeprefix("kafka."), nearest, n=1)
        hint = f"; did you mean '{nearest[close[0]]}'?" if close else ""
        logger.warning("Option '%s' has no effect here%s", name, f": {reason}" if reason else hint)
