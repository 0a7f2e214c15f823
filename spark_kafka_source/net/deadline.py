"""Points in time by which something must have happened: whatever waits has one."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on the monotonic clock, in seconds, and the span it was made from."""

    at_seconds: float
    timeout_ms: int

    @classmethod
    def after_ms(cls, timeout_ms: int) -> "Deadline":
        """The point `timeout_ms` from now."""
        return cls(time.monotonic() + timeout_ms / 1000, timeout_ms)

    def remaining_seconds(self) -> float:
        """Seconds left; 0.0 once it is past."""
        return max(0.0, self.at_seconds - time.monotonic())

    def remaining_ms(self) -> int:
        """Whole milliseconds left; 0 once it is past."""
        return int(self.remaining_seconds() * 1000)

    @property
    def expired(self) -> bool:
        """Whether the point is past."""
        return self.remaining_seconds() <= 0.0

    def within_ms(self, timeout_ms: int) -> "Deadline":
        """The earlier of this point and `timeout_ms` from now."""
        sooner = Deadline.after_ms(timeout_ms)
        return sooner if sooner.at_seconds < self.at_seconds else self
