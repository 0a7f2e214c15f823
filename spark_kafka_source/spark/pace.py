"""How often a query that has nothing to read asks the brokers whether that is still so."""

import time

LEAST_PAUSE_SECONDS = 0.2
"""Spark asks an idle source some 87 times a second; a look at the brokers at times is enough."""

# Spark waits for the question that it has asked before it stops a query.
_MOST_PAUSE_SECONDS = 2.0
_MOST_REQUESTS_A_SECOND = 10


class Pace:
    """Looks come quickly at first, then so far apart that they cost some ten requests a second.

    A look costs a request to each broker that leads anything, so it is on large clusters alone that
    it becomes rare; two seconds apart at most.
    """

    def __init__(self) -> None:
        self._pause_seconds = 0.0

    def wait(self) -> None:
        """Before a look, and not after it: what Spark is told is then how things are."""
        if self._pause_seconds:
            time.sleep(self._pause_seconds)

    def found_nothing(self, requests: int) -> None:
        """A look that cost so many requests was for nothing."""
        most_seconds = min(requests / _MOST_REQUESTS_A_SECOND, _MOST_PAUSE_SECONDS)
        doubled = max(2 * self._pause_seconds, LEAST_PAUSE_SECONDS)
        self._pause_seconds = min(doubled, max(most_seconds, LEAST_PAUSE_SECONDS))

    def found_something(self) -> None:
        """There was something to read: more may follow soon."""
        self._pause_seconds = 0.0
