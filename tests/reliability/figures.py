"""The table of `make reliability`: promises, faults and figures."""

from collections.abc import Iterable
from dataclasses import dataclass

PROMISES = {
    "2": "a driver killed and started again reads the same rows in the same micro-batches",
    "3": "a Python worker killed in mid-read loses no row and doubles none",
    "4": "a topic made anew, shorter or longer, is data loss by name",
    "5": "an unclean leader election is data loss that names the offset where the logs part",
    "6": "retention that overtakes a read is an error or a skip, and never a wrong or double row",
    "7": "gaps of compaction, emptied batches and deleted records are passed over in silence",
    "8": "transactions are exact in both isolation levels",
    "9": "odd lists of aborted transactions and odd markers show no aborted row",
    "10": "added partitions are read from their first record on",
    "11": "brokers killed one after another do not end a query",
    "12": "a leader that moves in mid-read costs no row and doubles none",
    "13": "a killed group coordinator does not end a query, and the group's lag ends at 0",
    "15": "a broker that is stopped, or an address that says nothing, costs seconds and no record",
    "16": "sessions that end, tokens that run out, connections closed when idle go unnoticed",
    "17": "a reader over its quota keeps to it, and is the slower for it, not the worse",
    "18": "what resolves anew, moves, or is all gone and comes back elsewhere is found again",
    "22": "impossible lengths and other servers are refused before memory is taken",
    "24": "a set-up that cannot work is refused by cause and option, and never let in",
    "deleted topic": "a topic deleted under its readers costs those of other topics nothing",
    "patterns": "a new topic that a pattern matches is shared among all members at once",
    "members": "a partition is one member's of its group at a time, whoever comes and goes",
    "chaos": "members that die, freeze and go lose nothing, and double only what is not committed",
    "managed group": "queries that share a group lose nothing, and double one micro-batch at most",
    "exactly once": "results and offsets in one transaction of a database count each record once",
    "written once": "with idempotence nothing is lost, doubled or reordered, whatever brokers do",
    "written": "a producer without idempotence loses nothing that was acknowledged",
    "pipeline": "what is read, and written with its positions in a transaction, is so exactly once",
    "stopped": "a producer that is ended in mid-send has written what it said it has",
    "decided": "a micro-batch is written once, whatever happens to brokers as it is decided",
    "stopping": "drivers and workers that die or stand still at any statement write each row once",
    "former coordinator": "a driver that a former coordinator tells an old decision writes once",
    "exactly-once sink": "what a query writes exactly once is seen once, whatever dies meanwhile",
    "coordinator": "a coordinator that is killed and comes back costs members no rebalance",
    "KIP-392": "records are fetched from the replica in the reader's rack, or else from the leader",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table. `promise` is a key of `PROMISES`. `test` checks it."""

    promise: str
    done: str
    found: str
    test: str


SHOWN_ELSEWHERE = (
    Figure(
        "4",
        "a topic deleted and made anew while its stream is stopped, shorter, as long and longer",
        "detected",
        "tests/parity/test_topic_life.py::test_a_topic_is_made_anew_while_the_stream_is_stopped",
    ),
    Figure(
        "4",
        "the same under Trigger.AvailableNow, with fewer rows",
        "detected",
        "tests/spark/source/test_streaming.py::test_a_topic_made_anew_with_fewer_rows_is_data_loss",
    ),
    Figure(
        "9",
        "the list in any order, a producer in it twice",
        "leaks: 0",
        "tests/records/test_chunks.py::"
        "test_a_producer_may_abort_twice_and_the_list_come_in_any_order",
    ),
    Figure(
        "9",
        "an abort marker twice",
        "leaks: 0",
        "tests/records/test_chunks.py::test_a_marker_may_come_twice",
    ),
    Figure(
        "9",
        "a marker with no data",
        "leaks: 0",
        "tests/records/test_chunks.py::test_a_marker_without_data_before_it_is_no_harm",
    ),
    Figure(
        "9",
        "all three by Fetch, from the in-memory broker",
        "leaks: 0",
        "tests/fetch/test_range_reader.py::"
        "test_an_aborted_list_in_any_order_with_a_marker_twice_or_without_data",
    ),
    Figure(
        "24",
        "38 set-ups: other servers on the port, TLS, certificates, logins, tokens, rights",
        "let in: 0; a wrong login shown to one of two servers, once",
        "tests/security/test_diagnosis.py::test_a_set_up_that_cannot_work",
    ),
)
"""Figures of tests outside this package."""


def render(figures: Iterable[Figure], seed: int) -> str:
    """Return the table as Markdown, in the order of the promises."""
    order = list(PROMISES)
    rows = sorted([*figures, *SHOWN_ELSEWHERE], key=lambda each: order.index(each.promise))
    cells = [
        (each.promise, PROMISES[each.promise], each.done, each.found, f"`{each.test}`")
        for each in rows
    ]
    head = ["| # | promise | what was done | figure | test |", "|---|---|---|---|---|"]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([f"Seed {seed}.", "", *head, *lines, ""])
