"""How often a query that has nothing to read asks the brokers whether that is still so."""

import time

LEAST_PAUSE_SECONDS = 0.2
"""Spark asks an idle source some 87 times a second; a look at the brokers at times is enough."""

_MOST_REQUESTS_A_SECOND = 10


class Pace:
    """Looks come quickly at first, and then so far apart that they cost ten requests a second.

    A look costs a request to each broker that leads anything, so it is on large clusters alone that
    it becomes rare.
    """

    def __init__(self) -> None:
        self._pause_seconds = LEAST_PAUSE_SECONDS
        self._next_look_seconds = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return time.monotonic() >= self._next_look_seconds

    def found_nothing(self, requests: int) -> None:
        """A look that cost so many requests was for nothing."""
        most_seconds = max(requests / _MOST_REQUESTS_A_SECOND, LEAST_PAUSE_SECONDS)
        self._next_look_seconds = time.monotonic() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, most_seconds)

    def found_something(self) -> None:
        """There was something to read: more may follow soon."""
        self._pause_seconds = LEAST_PAUSE_SECONDS
        self._next_look_seconds = 0.0
