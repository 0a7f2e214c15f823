"""Reports of data loss: errors, or with `failOnDataLoss=false` lines in the log."""

import logging
from dataclasses import dataclass

from spark_kafka_source.spark.conditions import DataLossError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DataLoss:
    """The option `failOnDataLoss`."""

    fails: bool = True

    def report(self, error: DataLossError) -> None:
        """Raise the error, or log it. The caller then goes on with the records that are there."""
        if self.fails:
            raise error
        logger.warning("%s; going on, since failOnDataLoss is false", error)
