"""How often a query that has nothing to read asks the brokers whether that is still so."""

import time

LEAST_PAUSE_SECONDS = 0.2
"""Spark asks an idle source some 87 times a second; a look at the brokers at times is enough."""

# Spark waits for the question that it has asked before it stops a query.
_MOST_PAUSE_SECONDS = 2.0
_MOST_REQUESTS_A_SECOND = 10
# Where all leaders are watched, a look is only to be on the safe side.
_WATCHED_PAUSE_SECONDS = 1.0
_WATCHED_LOOK_SECONDS = 60.0


class Pace:
    """Looks come quickly at first, then so far apart that they cost some ten requests a second.

    A look costs a request to each broker that leads anything. On large clusters it would become
    rare, two seconds apart at most; where the leaders are watched, it can be spared altogether.
    """

    def __init__(self) -> None:
        self.pause_seconds = 0.0
        """How long to wait before the next look, and not after it: Spark is told how things are."""
        self._looked_at_seconds = 0.0
        self._is_dear = False

    def may_spare_look(self) -> bool:
        """Whether a look would cost too much, where the leaders are watched and have no news."""
        age_seconds = time.monotonic() - self._looked_at_seconds
        return self._is_dear and age_seconds < _WATCHED_LOOK_SECONDS

    def found_nothing(self, requests: int, *, watched: bool = False) -> None:
        """A look that cost so many requests was for nothing."""
        self._looked_at_seconds = time.monotonic()
        wanted_seconds = requests / _MOST_REQUESTS_A_SECOND
        most_seconds = _WATCHED_PAUSE_SECONDS if watched else _MOST_PAUSE_SECONDS
        self._is_dear = wanted_seconds > _WATCHED_PAUSE_SECONDS
        pause_seconds = max(min(wanted_seconds, most_seconds), LEAST_PAUSE_SECONDS)
        # News ends a watched pause, so it may be long at once.
        doubled = max(2 * self.pause_seconds, LEAST_PAUSE_SECONDS)
        self.pause_seconds = pause_seconds if watched else min(doubled, pause_seconds)

    def found_something(self) -> None:
        """There was something to read: more may follow soon."""
        self.pause_seconds = 0.0
