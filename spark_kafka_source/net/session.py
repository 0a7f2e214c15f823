"""The lifetime of an authentication (KIP-368)."""

import math
import time
from dataclasses import dataclass

_RENEWED_AFTER = 0.85
_LONGEST_SECONDS = 10 * 365 * 86_400
# A broker takes an earlier second renewal for an ordinary request, and refuses it.
_SOONEST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Session:
    """Lifetime of an authentication, on the monotonic clock. By default it has no end."""

    renewed_at_seconds: float = math.inf
    ends_at_seconds: float = math.inf

    @classmethod
    def lasting_ms(cls, lifetime_ms: int, since_seconds: float) -> "Session":
        """Return a session that began between `since_seconds` and now. 0 ms means no end."""
        if lifetime_ms <= 0:
            return cls()
        lifetime_seconds = min(lifetime_ms / 1000, _LONGEST_SECONDS)
        renewed_at_seconds = since_seconds + _RENEWED_AFTER * lifetime_seconds
        soonest_seconds = time.monotonic() + _SOONEST_SECONDS
        return cls(max(renewed_at_seconds, soonest_seconds), since_seconds + lifetime_seconds)

    def is_due(self) -> bool:
        """Whether it is time to authenticate again."""
        return time.monotonic() >= self.renewed_at_seconds

    def is_over(self) -> bool:
        """Whether the broker may have ended the session."""
        return time.monotonic() >= self.ends_at_seconds
