"""Warning of a consumer that no broker answers: without it, the topic would seem empty."""

import time

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.logs import logger_of
from spark_kafka_source.spelling import as_written

logger = logger_of(__name__)

# A healthy broker, also a distant one, has mostly answered by then.
_PATIENCE_SECONDS = 0.5


class UnreachableWarning:
    """Watch over the time from a consumer's first poll to the first answer of any broker."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self._began_seconds: float | None = None
        self._told_kinds: set[type] = set()

    def poll_began(self) -> None:
        """Note the start of the first poll: no broker is asked before."""
        if self._began_seconds is None:
            self._began_seconds = time.monotonic()

    def poll_ended(self) -> None:
        """Warn if no broker was ever reached, and an address failed or there was time.

        Warn once of each kind of error.
        """
        history = self._client.history
        kind = type(history.last_error)
        if history.was_reached or kind in self._told_kinds or self._began_seconds is None:
            return
        passed_seconds = time.monotonic() - self._began_seconds
        if history.last_error is not None:
            text = str(history.last_error)
        elif passed_seconds >= _PATIENCE_SECONDS:
            text = (
                f"No broker of 'kafka.bootstrap.servers' has answered within {passed_seconds:.1f} "
                f"s; asked {', '.join(map(str, self._client.config.bootstrap_servers))}"
            )
        else:
            return
        self._told_kinds.add(kind)
        logger.warning("%s; trying again", as_written(text))
