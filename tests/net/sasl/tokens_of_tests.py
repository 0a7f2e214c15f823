"""Token sources for tests."""

from dataclasses import dataclass, field

from spark_kafka_source.net.sasl import Token
from spark_kafka_source.secret import Secret

CANARY = "canary.of-a~token+/=="


@dataclass
class Clock:
    """A clock in seconds since 1970. Only pauses and the test advance it."""

    now_seconds: float = 1_000_000.0
    pauses: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now_seconds

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_seconds += seconds


class Source:
    """Return `token-1`, `token-2`, ... of `life_seconds`, or raise `error`."""

    def __init__(self, clock: Clock, life_seconds: float = 1000.0) -> None:
        self.clock, self.life_seconds = clock, life_seconds
        self.asked = 0
        self.error: Exception | None = None

    def token(self) -> Token:
        self.asked += 1
        if self.error:
            raise self.error
        return Token(Secret(f"token-{self.asked}"), self.clock() + self.life_seconds)


@dataclass(frozen=True)
class Fixed:
    """A token provider like a user's."""

    text: str = CANARY

    def token(self) -> Token:
        return Token(Secret(self.text), 4_000_000_000.0)
