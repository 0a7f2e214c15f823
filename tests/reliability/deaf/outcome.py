"""What came of a fault for one client."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.reliability.deaf.clients import Client

RECORDS = "records of all partitions flow"
COMMIT = "offsets are committed"
GAP = "partitions that no fault concerns stand still"
ASK = "a commit that may take 5 s"
CLOSE = "`close()`"
SPREAD = "a new topic is shared among all members"
POLL = "longest `poll(100)`"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`seconds` by what they are of; None where it did not come to pass within the patience.

    Those until something happens count from the fault on.
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
        """What took longer than it may, or failed."""
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
