"""The acts of a group's members, partition by partition, and the rules for them.

A stint is the time of one partition with one member: from `assigned` to `revoked`, `lost` or the
start of a close. These rules must hold, whichever members join, leave, freeze or die:

1. A stint begins to read at an offset that was the committed one at some moment between `assigned`
   and its first record. An earlier offset would double records, a later one would lose some. So a
   record is read twice only if it is not before the last commit that the brokers took until then.
2. Within a stint records come in order, none left out and none twice.
3. The committed offset of a partition never goes back, and never lies beyond the records read. No
   member moves it after another's stint has begun: a fenced member commits nothing.
4. A stint begins after the one before has ended, unless the member before is dead, was frozen, or
   reports the partition as lost. So no member reads a partition that it has given up, and no member
   gets a partition that another one still holds.
5. All records are read at least once.

The order of commits is that of the brokers' own log, `__consumer_offsets`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

Where = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that the brokers took. `member` is the name in its metadata, if there is one."""

    at_ms: int
    offset: int
    member: str = ""


@dataclass(slots=True)
class Read:
    """Offsets handed out at once. `end` is the offset after the last one."""

    at_ms: int
    first: int
    end: int


@dataclass(slots=True)
class Stint:
    """A stint of one partition with one member. `end` tells how it ended; "" if it did not."""

    where: Where
    member: str
    began_ms: int
    ended_ms: int | None = None
    end: str = ""
    reads: list[Read] = field(default_factory=list)


@dataclass(slots=True)
class Life:
    """The content of one member's diary. `frozen` are the times when it was stopped."""

    name: str
    is_ours: bool = True
    stints: list[Stint] = field(default_factory=list)
    rebalances: int = 0
    failures: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    commits_done: int = 0
    commits_failed: int = 0
    is_dead: bool = False
    frozen: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Life":
        life = cls(path.stem)
        held: dict[Where, Stint] = {}
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        for line in lines[:-1]:  # The last line is empty, or cut off.
            life._take(json.loads(line), held)
        return life

    def _take(self, line: dict[str, Any], held: dict[Where, Stint]) -> None:
        at_ms, what = line["at_ms"], line["what"]
        if what == "begins":
            self.is_ours = line["ours"]
        elif what == "failed":
            self.failures.append(line["error"])
        elif what == "committed":
            self.commits_done += line["error"] is None
            self.commits_failed += line["error"] is not None
        elif what == "assigned":
            self.rebalances += 1
            for where in map(_where, line["where"]):
                self._end(held, where, at_ms, "assigned again")
                held[where] = Stint(where, self.name, at_ms)
                self.stints.append(held[where])
        elif what in ("revoked", "lost"):
            for where in map(_where, line["where"]):
                self._end(held, where, at_ms, what)
        elif what == "closing" and not self.is_ours:
            for where in list(held):
                self._end(held, where, at_ms, what)
        elif what == "read":
            for topic, partition, first, end in line["ranges"]:
                self._take_read((topic, partition), Read(at_ms, first, end), held)

    def _end(self, held: dict[Where, Stint], where: Where, at_ms: int, how: str) -> None:
        stint = held.pop(where, None)
        if stint is not None:
            stint.ended_ms, stint.end = at_ms, how
            if how == "assigned again":
                self.wrong.append(f"{self.name}: {where} assigned twice")
        elif how in ("revoked", "lost") and self.is_ours:
            self.wrong.append(f"{self.name}: {where} {how}, which it did not have")

    def _take_read(self, where: Where, read: Read, held: Mapping[Where, Stint]) -> None:
        stint = held.get(where)
        if stint is None:
            self.wrong.append(f"{self.name}: read {where} {read.first}, which it does not own")
            return
        if stint.reads and stint.reads[-1].end != read.first:
            self.wrong.append(
                f"{self.name}: {where} from {stint.reads[-1].end} to {read.first} in one stint"
            )
        stint.reads.append(read)

    def is_excused(self, stint: Stint, at_ms: int) -> bool:
        """Whether the member may not have known at this moment that it lost the partition."""
        was_frozen = any(since_ms <= at_ms for since_ms, _ in self.frozen)
        return self.is_dead or was_frozen or stint.end == "lost"


def _where(found: Sequence[Any]) -> Where:
    topic, partition = found
    return topic, partition


@dataclass(slots=True)
class Judgement:
    """The result. `wrong` has a text for each fault."""

    wrong: list[str] = field(default_factory=list)
    theirs: list[str] = field(default_factory=list)
    "Faults of confluent-kafka's members, which are only shown."
    records: int = 0
    read: int = 0
    lost: int = 0
    doubled: int = 0
    doubled_although_committed: int = 0
    zombies: int = 0
    "Records handed out by a member that did not know yet that another one has the partition."
    stints: int = 0
    rebalances: int = 0
    lost_stints: int = 0

    def of(self, life: Life) -> list[str]:
        """Return the list for a member's faults."""
        return self.wrong if life.is_ours else self.theirs

    def __str__(self) -> str:
        return (
            f"{self.records} records, {self.read} reads, lost: {self.lost}, doubled: "
            f"{self.doubled} ({self.zombies} of them by members that did not know yet), doubled "
            f"although committed: {self.doubled_although_committed}, other faults: "
            f"{len(self.wrong)}, of confluent-kafka's: {len(self.theirs)}"
        )


def judge(
    lives: Iterable[Life], commits: Mapping[Where, Sequence[Commit]], ends: Mapping[Where, int]
) -> Judgement:
    """Check the members' acts against the rules above. `ends` are the ends of the logs."""
    by_name = {each.name: each for each in lives}
    found = Judgement()
    stints: dict[Where, list[Stint]] = {where: [] for where in ends}
    for life in by_name.values():
        faults = found.of(life)
        faults += life.wrong
        faults += [f"{life.name}: {failure}" for failure in life.failures]
        found.rebalances += life.rebalances
        for stint in life.stints:
            stints[stint.where].append(stint)
    for where, end in ends.items():
        in_order = sorted(stints[where], key=lambda each: each.began_ms)
        found.stints += len(in_order)
        found.lost_stints += sum(each.end == "lost" for each in in_order)
        _judge_partition(found, by_name, in_order, commits.get(where, ()), end)
    return found


def _judge_partition(
    found: Judgement,
    lives: Mapping[str, Life],
    stints: Sequence[Stint],
    commits: Sequence[Commit],
    end: int,
) -> None:
    counts = [0] * end
    for stint in stints:
        for read in stint.reads:
            for offset in range(read.first, read.end):
                counts[offset] += 1
    found.records += end
    found.read += sum(counts)
    found.lost += counts.count(0)
    found.doubled += sum(count - 1 for count in counts if count)
    for before, after in pairwise(stints):
        _judge_handover(found, lives[before.member], before, after)
    for stint in stints:
        _judge_beginning(found, lives[stint.member], stint, commits)
    _judge_commits(found, lives, stints, commits)


def _judge_handover(found: Judgement, life: Life, before: Stint, after: Stint) -> None:
    late = [read for read in before.reads if read.at_ms > after.began_ms]
    found.zombies += sum(read.end - read.first for read in late)
    if before.member == after.member:
        return
    ended = before.ended_ms is not None and before.ended_ms <= after.began_ms
    if not ended and not life.is_excused(before, after.began_ms):
        found.of(life).append(
            f"{before.where}: {after.member}'s from {after.began_ms} on, {before.member}'s until "
            f"{before.ended_ms} {before.end}"
        )


def _judge_beginning(found: Judgement, life: Life, stint: Stint, commits: Sequence[Commit]) -> None:
    if not stint.reads:
        return
    first = stint.reads[0]
    before = [each.offset for each in commits if each.at_ms < stint.began_ms]
    during = [each.offset for each in commits if stint.began_ms <= each.at_ms <= first.at_ms]
    least = before[-1] if before else 0
    possible = {least, *during}
    if first.first < least and life.is_ours:
        found.doubled_although_committed += least - first.first
    if first.first not in possible:
        found.of(life).append(
            f"{stint.where}: {stint.member} begins at {first.first} though {sorted(possible)} "
            f"were committed, at {stint.began_ms} to {first.at_ms}"
        )


def _judge_commits(
    found: Judgement,
    lives: Mapping[str, Life],
    stints: Sequence[Stint],
    commits: Sequence[Commit],
) -> None:
    for before, after in pairwise(commits):
        if after.offset < before.offset:
            by_whom = lives.get(after.member)
            faults = found.wrong if by_whom is None else found.of(by_whom)
            faults.append(f"{stints[0].where}: {before} is taken back by {after}")
    reads = sorted((read.at_ms, read.end) for stint in stints for read in stint.reads)
    read_up_to, place = 0, 0
    for commit in commits:
        while place < len(reads) and reads[place][0] <= commit.at_ms:
            read_up_to, place = max(read_up_to, reads[place][1]), place + 1
        if commit.offset > read_up_to:
            found.wrong.append(f"{stints[0].where}: {commit} is beyond {read_up_to}, read by then")
        if commit.member:
            _judge_committer(found, stints, commit)


def _judge_committer(found: Judgement, stints: Sequence[Stint], commit: Commit) -> None:
    """Check that a commit comes from the member whose stint began last."""
    begun = [each for each in stints if each.began_ms < commit.at_ms]
    if begun and begun[-1].member != commit.member and begun[-1].reads:
        # The new member may not have looked up the offset yet. It has by its first record.
        looked_ms = begun[-1].reads[0].at_ms
        if looked_ms < commit.at_ms:
            found.wrong.append(
                f"{begun[-1].where}: {commit}, though it is {begun[-1].member}'s since "
                f"{begun[-1].began_ms}"
            )
