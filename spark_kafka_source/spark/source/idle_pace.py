"""The pace at which a query with nothing to read asks the brokers for news."""

import time

LEAST_PAUSE_SECONDS = 0.2
"""The shortest pause between looks. Spark asks an idle source some 87 times a second."""

# Spark waits for its last answer before it stops a query.
_MOST_PAUSE_SECONDS = 2.0
_MOST_REQUESTS_A_SECOND = 10
# If all leaders are watched, a look is only for safety.
_WATCHED_PAUSE_SECONDS = 1.0
_WATCHED_LOOK_SECONDS = 60.0


class IdlePace:
    """The pauses between looks: short at first, then such that looks cost ten requests a second.

    A look costs a request to each leader. On large clusters looks are two seconds apart at most.
    If the leaders are watched, the query can do without them for a minute.
    """

    def __init__(self) -> None:
        self.pause_seconds = 0.0
        """The pause before the next look. With a pause after it, Spark would get old offsets."""
        self._looked_at_seconds = 0.0
        self._is_dear = False

    def may_spare_look(self) -> bool:
        """Whether a look can be spared: it costs many requests, and the last one is recent.

        Call it only if the leaders are watched and have no news.
        """
        age_seconds = time.monotonic() - self._looked_at_seconds
        return self._is_dear and age_seconds < _WATCHED_LOOK_SECONDS

    def found_nothing(self, requests: int, *, watched: bool = False) -> None:
        """Note that a look found nothing, and how many requests it cost."""
        self._looked_at_seconds = time.monotonic()
        wanted_seconds = requests / _MOST_REQUESTS_A_SECOND
        most_seconds = _WATCHED_PAUSE_SECONDS if watched else _MOST_PAUSE_SECONDS
        self._is_dear = wanted_seconds > _WATCHED_PAUSE_SECONDS
        pause_seconds = max(min(wanted_seconds, most_seconds), LEAST_PAUSE_SECONDS)
        # News ends a watched pause, so the pause may be long at once.
        doubled = max(2 * self.pause_seconds, LEAST_PAUSE_SECONDS)
        self.pause_seconds = pause_seconds if watched else min(doubled, pause_seconds)

    def found_something(self) -> None:
        """Note that there was something to read: more may follow soon."""
        self.pause_seconds = 0.0
