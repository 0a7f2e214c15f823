"""The outcome of a fault for one client."""

from collections.abc import Mapping
from dataclasses import dataclass

from tools.reliability.deaf.clients import Client

RECORDS = "records of all partitions flow"
COMMIT = "offsets are committed"
GAP = "partitions that no fault concerns stand still"
ASK = "a commit that may take 5 s"
CLOSE = "`close()`"
SPREAD = "a new topic is shared among all members"
POLL = "longest `poll(100)`"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a fault. `seconds` are by event; None if it did not happen in time.

    Times until an event count from the fault on.
    """

    client: Client
    seconds: Mapping[str, float | None]
    longest_poll_seconds: float
    lost: int = 0
    doubled: int = 0
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = {**self.seconds, POLL: self.longest_poll_seconds}
        told = [
            f"{what}: {'never' if found is None else f'{found:.1f} s'}"
            for what, found in shown.items()
        ]
        return "; ".join([*told, f"lost {self.lost}", f"doubled {self.doubled}"])

    def exceeding(self, seconds: float, poll_seconds: float) -> list[str]:
        """Return texts about times over these bounds, lost records, and errors."""
        late = [
            f"{what}: {found}"
            for what, found in self.seconds.items()
            if found is None or found > seconds
        ]
        if self.longest_poll_seconds > poll_seconds:
            late.append(f"{POLL}: {self.longest_poll_seconds}")
        if self.lost:
            late.append(f"lost {self.lost}")
        return [*late, *self.errors]
