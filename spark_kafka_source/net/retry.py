"""The one retry loop: backoff with jitter, by the error's remedy, until a deadline."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.errors import BootstrapError, KafkaError, KafkaTimeoutError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.net.conversation import Conversation, pause
from spark_kafka_source.net.deadline import Deadline

logger = logger_of(__name__)

T = TypeVar("T")

# Kafka's clients vary a pause by a fifth, so that clients that failed together do not come back
# together.
_JITTER = 0.2
# A query waits minutes for brokers that are away. Its log says so meanwhile.
_SECONDS_BETWEEN_WARNINGS = 30


@dataclass(frozen=True, slots=True)
class Retry:
    """Pauses between tries. They double from `backoff_ms` to `backoff_max_ms`."""

    backoff_ms: int = 100
    backoff_max_ms: int = 1_000

    async def run(
        self,
        what: str,
        attempt: Callable[[Deadline], Conversation[T]],
        recover: Callable[[KafkaError], None],
        deadline: Deadline,
    ) -> T:
        """Return the first answer of `attempt`. Call `recover` between two tries.

        An error without a remedy is raised as it is. At the deadline, `KafkaTimeoutError` names the
        call and its last two failures, since the last try may have had no time. A `BootstrapError`
        lists the addresses, so it is raised itself with both failures, unless a broker was reached.
        Failures are logged at DEBUG, and every 30 seconds at WARNING.
        """
        tries, left_seconds = 0, deadline.remaining_seconds()
        previous: KafkaError | None = None
        while True:
            try:
                return await attempt(deadline)
            except KafkaError as error:
                if not error.has_remedy:
                    raise
                tries += 1
                pause_seconds = self.pause_seconds(tries)
                if pause_seconds >= deadline.remaining_seconds():
                    failure = _gave_up(what, tries, deadline, error, previous)
                    # An error that is its own cause would have an endless chain.
                    raise failure from (None if failure is error else error)
                level = logging.DEBUG
                if left_seconds - deadline.remaining_seconds() >= _SECONDS_BETWEEN_WARNINGS:
                    level, left_seconds = logging.WARNING, deadline.remaining_seconds()
                text = "%s: no success in %s tries, and %.0f s left; the last: %s"
                logger.log(level, text, what, tries, deadline.remaining_seconds(), error)
                recover(error)
                previous = error
            await pause(pause_seconds)

    def beginning_with(self, pause_ms: int) -> "Retry":
        """Return a copy whose first pause is at most `pause_ms`."""
        return replace(self, backoff_ms=min(pause_ms, self.backoff_ms))

    def pause_seconds(self, tries: int) -> float:
        """Return the pause, with jitter, after `tries` failures."""
        doubled = self.backoff_ms << min(tries - 1, 20)
        spread = CHANCE.uniform(1 - _JITTER, 1 + _JITTER)
        return min(doubled, self.backoff_max_ms) * spread / 1000


class NextTry:
    """The backoff of code that cannot wait in `Retry.run`: counts tries, and says when one is due.

    Call `failed` after each failure, and `succeeded` or `reset` after a success.
    """

    def __init__(
        self,
        pause_seconds: Callable[[int], float],
        *,
        least_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create it. `pause_seconds` is `Retry.pause_seconds`, or a client's.

        No pause is shorter than `least_seconds`.
        """
        self._pause_seconds = pause_seconds
        self._least_seconds = least_seconds
        self._clock = clock
        self.tries = 0
        """The failures since the last success."""
        self.at_seconds = 0.0
        """On the clock. At first, a try is due at once. A caller may set it, as by a throttle."""

    @property
    def is_due(self) -> bool:
        """Whether a try is due."""
        return self._clock() >= self.at_seconds

    def failed(self, pause_seconds: Callable[[int], float] | None = None) -> None:
        """Note a failed try. `pause_seconds` is in place of the usual, for this pause alone."""
        self.tries += 1
        pause = (pause_seconds or self._pause_seconds)(self.tries)
        self.at_seconds = self._clock() + max(pause, self._least_seconds)

    def succeeded(self) -> None:
        """Note a success: the next pause is as short as the first. A pause under way goes on."""
        self.tries = 0

    def reset(self) -> None:
        """Begin anew: a try is due at once."""
        self.tries, self.at_seconds = 0, 0.0


def _gave_up(
    what: str, tries: int, deadline: Deadline, error: KafkaError, previous: KafkaError | None
) -> KafkaError:
    if isinstance(error, BootstrapError) and isinstance(previous, BootstrapError | None):
        return _with_the_faults_before(error, previous)
    text = f"{what}: no success in {tries} tries within {deadline.timeout_ms} ms; the last: {error}"
    if previous is not None and str(previous) != str(error):
        text += f"; the one before: {previous}"
    return KafkaTimeoutError(text)


def _with_the_faults_before(
    error: BootstrapError, previous: BootstrapError | None
) -> BootstrapError:
    before = [each for each in previous.failures if each not in error.failures] if previous else []
    if not before:
        return error
    return BootstrapError([*error.failures, *(f"before that, {each}" for each in before)])
