"""What becomes of data loss: an error, or with `failOnDataLoss=false` a line in the log."""

import logging
from dataclasses import dataclass

from spark_kafka_source.spark.conditions import DataLossError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DataLoss:
    """The option `failOnDataLoss`."""

    fails: bool = True

    def report(self, error: DataLossError) -> None:
        """Raises the error, or logs it: the caller then goes on with what is there."""
        if self.fails:
            raise error
        logger.warning("%s; going on, since failOnDataLoss is false", error)
