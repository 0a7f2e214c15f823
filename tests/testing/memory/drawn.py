"""Conversations that hypothesis draws: two topics, a group with at most one member, producers.

The JoinGroup of a second member waits for the first. Such rounds are written by hand.
"""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.testing.memory.group_steps import (
    JOIN,
    LEAVE,
    Beat,
    Commit,
    Committed,
    DeleteGroup,
    Describe,
    DescribeConsumers,
    ForgetOffsets,
    Heartbeat,
    Join,
    Leave,
    List,
    Sync,
)
from tests.testing.memory.producer_steps import (
    AddOffsets,
    AddPartitions,
    CommitInTransaction,
    DescribeProducers,
    DescribeTransaction,
    End,
    Init,
    Produce,
    Waits,
)
from tests.testing.memory.sides import FIRST_TIMESTAMP_MS, STRANGER
from tests.testing.memory.steps import (
    ALONE,
    CLOSE,
    EARLIEST,
    FIRST,
    LATE,
    LATEST,
    NEXT,
    NOBODY,
    UNKNOWN,
    Append,
    Create,
    Delete,
    EpochEnd,
    Fetch,
    ListOffsets,
    Metadata,
    Question,
    Step,
)

MOST_STEPS = 12
MEMBER = "m"
PRODUCER, TRANSACTIONAL = "n", "p"

_topics = st.sampled_from(["a", "b"])
_where = st.sampled_from(["a-0", "a-1", "b-0", "a-9", "nope-0"])
_partitions = st.lists(_where, min_size=1, max_size=3, unique=True).map(sorted).map(" ".join)
_offsets = st.builds("{}={}".format, _where, st.integers(0, 5))
_with_offsets = st.lists(
    _offsets, min_size=1, max_size=3, unique_by=lambda text: text.split("=")[0]
).map(lambda texts: " ".join(sorted(texts)))
_epochs = st.sampled_from([-1, -1, 0, 7])
_times = st.sampled_from([LATEST, EARLIEST, FIRST_TIMESTAMP_MS + 1_500])
_shifts = st.sampled_from([0, 0, 0, 1, -1])
_speakers = st.sampled_from([NOBODY, MEMBER, MEMBER, STRANGER])
_sessions = st.sampled_from([ALONE, FIRST, NEXT, NEXT, LATE, UNKNOWN, CLOSE])

_one_batch = st.builds("{}={}".format, st.sampled_from(["a-0", "b-0"]), st.integers(0, 3))


def _waits(questions: SearchStrategy[Question]) -> SearchStrategy[Step]:
    return st.builds(Waits, questions, st.just(TRANSACTIONAL))


_OF_TOPICS: list[SearchStrategy[Step]] = [
    st.builds(Create, _topics, st.integers(1, 2)),
    st.builds(Delete, _topics),
    st.builds(Append, _topics, st.integers(1, 2)),
    st.builds(Metadata, st.just("a b nope"), st.booleans()),
    st.builds(ListOffsets, _partitions, _times, _epochs),
    st.builds(EpochEnd, _partitions, st.sampled_from([0, 7]), _epochs),
    st.builds(Fetch, _with_offsets, _sessions, _epochs, by_name=st.booleans()),
    st.builds(Fetch, session=st.just(NEXT)),
    st.builds(Fetch, session=st.just(NEXT), by_name=st.just(True)),
]
_OF_GROUPS: list[SearchStrategy[Step]] = [
    st.builds(Commit, _with_offsets, _speakers, _shifts),
    st.builds(Commit, _with_offsets, _speakers),
    st.builds(Committed, st.none() | _partitions, _speakers),
    st.builds(ForgetOffsets, _partitions),
    st.just(Describe()),
    st.just(DescribeConsumers()),
    st.just(List()),
    st.just(DeleteGroup()),
]
_CLASSIC: list[SearchStrategy[Step]] = [
    st.just(Join(MEMBER)),
    st.just(Join(MEMBER)),
    st.builds(Sync, st.just(MEMBER), st.just(MEMBER), _shifts),
    st.builds(Heartbeat, st.sampled_from([MEMBER, STRANGER]), _shifts),
    st.builds(Leave, st.sampled_from([MEMBER, STRANGER])),
]
_BY_KIP_848: list[SearchStrategy[Step]] = [
    st.builds(
        Beat,
        st.just(MEMBER),
        st.just(JOIN),
        st.sampled_from(["a", "a b", "nope"]),
        st.just(""),
        rebalance_timeout_ms=st.just(30_000),
    ),
    st.builds(Beat, st.just(MEMBER), shift=_shifts),
    st.builds(Beat, st.just(MEMBER), topics=st.sampled_from(["a", "b", "a b"])),
    st.builds(Beat, st.just(MEMBER), owned=st.sampled_from(["", "a-0 a-1", "b-0"])),
    st.builds(Beat, st.just(MEMBER), st.just(LEAVE)),
]

_OF_PRODUCERS: list[SearchStrategy[Step]] = [
    st.just(Init(PRODUCER)),
    st.builds(Produce, _with_offsets, st.just(PRODUCER), st.integers(1, 2)),
    st.builds(Produce, _one_batch, st.just(PRODUCER), st.integers(1, 2), epoch_shift=_shifts),
    st.builds(Produce, _one_batch),
    st.builds(ListOffsets, _partitions, st.just(LATEST), isolation_level=st.just(1)),
    st.builds(DescribeProducers, _partitions),
]
_IN_TRANSACTION = {"transactional_id": st.just(TRANSACTIONAL)}
_OF_TRANSACTIONS: list[SearchStrategy[Step]] = [
    _waits(st.just(Init(TRANSACTIONAL, TRANSACTIONAL))),
    _waits(st.builds(Init, *(st.just(TRANSACTIONAL),) * 2, st.just(True), _shifts)),
    st.builds(AddPartitions, st.just(TRANSACTIONAL), _partitions, shift=_shifts),
    st.just(AddPartitions(TRANSACTIONAL, "a-0 b-0")),
    st.builds(Produce, _one_batch, st.just(TRANSACTIONAL), st.integers(1, 2), **_IN_TRANSACTION),
    st.builds(Produce, _one_batch, st.just(TRANSACTIONAL), st.integers(1, 2), **_IN_TRANSACTION),
    st.builds(AddOffsets, st.just(TRANSACTIONAL), shift=_shifts),
    st.builds(CommitInTransaction, st.just(TRANSACTIONAL), _with_offsets, shift=_shifts),
    _waits(st.builds(End, st.just(TRANSACTIONAL), st.booleans(), shift=_shifts)),
    st.just(DescribeTransaction(TRANSACTIONAL)),
    st.just(Committed("a-0 b-0", is_stable=True)),
]


def _conversation(*kinds: list[SearchStrategy[Step]]) -> SearchStrategy[list[Step]]:
    """Return steps of random kinds. All kinds are equally likely."""
    step = st.one_of(*(st.one_of(*kind) for kind in kinds))
    return st.lists(step, min_size=1, max_size=MOST_STEPS)


CONVERSATIONS = st.one_of(
    _conversation(_OF_TOPICS),
    _conversation(_OF_TOPICS, _OF_GROUPS, _CLASSIC, _CLASSIC),
    _conversation(_OF_TOPICS, _OF_GROUPS, _BY_KIP_848, _BY_KIP_848),
    _conversation(_OF_TOPICS, _OF_PRODUCERS, _OF_PRODUCERS),
    _conversation(_OF_PRODUCERS, _OF_GROUPS, _OF_TRANSACTIONS, _OF_TRANSACTIONS),
)
