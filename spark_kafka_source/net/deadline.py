"""Deadlines. Every wait has one."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on the monotonic clock, in seconds, and the timeout that it came from."""

    at_seconds: float
    timeout_ms: int

    @classmethod
    def after_ms(cls, timeout_ms: int) -> "Deadline":
        """Return the deadline `timeout_ms` from now."""
        return cls(time.monotonic() + timeout_ms / 1000, timeout_ms)

    @classmethod
    def after_seconds(cls, seconds: float) -> "Deadline":
        """Return the deadline `seconds` from now."""
        return cls(time.monotonic() + seconds, int(seconds * 1000))

    @staticmethod
    def first(*deadlines: "Deadline") -> "Deadline":
        """Return the earliest of these deadlines."""
        return min(deadlines, key=lambda deadline: deadline.at_seconds)

    def remaining_seconds(self) -> float:
        """Return the seconds left: 0.0 after the deadline."""
        return max(0.0, self.at_seconds - time.monotonic())

    def remaining_ms(self) -> int:
        """Return the whole milliseconds left: 0 after the deadline."""
        return int(self.remaining_seconds() * 1000)

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.remaining_seconds() <= 0.0

    def within_ms(self, timeout_ms: int) -> "Deadline":
        """Return the earlier of this deadline and `timeout_ms` from now."""
        sooner = Deadline.after_ms(timeout_ms)
        return sooner if sooner.at_seconds < self.at_seconds else self
