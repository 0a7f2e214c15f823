"""Suites of Spark 4.2's own connector: number of tests, left-out tests, and additional scenarios.

The numbers come from `connector/kafka-0-10-sql/src/test` of Apache Spark. A test counts once, also
if it runs with several of the peer's plans and offset readers.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Number of the peer's tests that are left out, with their subject and the reason."""

    tests: int
    what: str


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite. `tests` counts the peer's tests; `added` are scenarios without a peer's test."""

    title: str
    tests: int
    left_out: tuple[LeftOut, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def here(self) -> int:
        """Number of the peer's tests that are here."""
        return self.tests - sum(each.tests for each in self.left_out)

    def has_added(self, scenario: str, parameters: str) -> bool:
        """Whether the peer has no test for a scenario, or none with these parameters."""
        return scenario in self.added or f"{scenario}[{parameters}]" in self.added


_NO_CONTINUOUS_PROCESSING = "continuous processing, which Python data sources do not have"
_OTHER_PLAN = "which of the peer's two plans is taken"

SUITES: dict[str, Suite] = {
    "start_positions": Suite("Start positions", 34),
    "rate_limits": Suite("Limits of a micro-batch", 7),
    "available_now": Suite("`AvailableNow`", 4),
    "topic_life": Suite(
        "Topics that come and go",
        5,
        added=(
            "a_topic_is_deleted_while_the_stream_is_stopped",
            "a_topic_is_made_anew_while_the_stream_is_stopped[as long]",
            "a_topic_that_the_peer_has_read_is_made_anew_and_shorter",
        ),
    ),
    "transactions": Suite("Transactions", 4),
    "batch": Suite(
        "Batch",
        25,
        left_out=(LeftOut(2, _OTHER_PLAN),),
        added=("a_pattern_that_is_only_a_part_of_a_name",),
    ),
    "data_loss": Suite(
        "Data loss",
        6,
        left_out=(
            LeftOut(2, "the second of the peer's two plans for streams and for batches"),
            LeftOut(1, _NO_CONTINUOUS_PROCESSING),
        ),
        added=(
            "a_stream_fails_on_what_is_gone",
            "a_batch_fails_on_what_is_gone",
            "a_stream_skips_what_goes_after_planning",
            "a_stream_fails_on_what_goes_after_planning",
            "an_added_partition_has_lost_records",
        ),
    ),
    "ranges": Suite(
        "Ranges cut into tasks",
        19,
        left_out=(LeftOut(1, "which executor a task is sent to: Spark lets no Python source say"),),
        added=("empty_partitions_do_not_count",),
    ),
    "options": Suite(
        "Options, rows, progress, checkpoints",
        36,
        left_out=(
            LeftOut(10, "offsets compared and serialised, by methods of the peer's JVM class"),
            LeftOut(3, "files of Spark 2.1 and 2.4 that only the peer's sources hold"),
            LeftOut(2, "metrics without an offset, a method of the peer's JVM class"),
            LeftOut(2, _OTHER_PLAN),
            LeftOut(1, _NO_CONTINUOUS_PROCESSING),
        ),
        added=("an_end_by_one_timestamp_is_refused",),
    ),
    "sink": Suite(
        "Writing",
        14,
        added=(
            "a_batch_without_a_mode",
            "columns_are_found_by_their_exact_names",
            "fields_of_headers_in_any_case",
            "a_header_without_a_key_is_refused",
            "a_partition_that_is_not_there_is_refused",
            "a_column_of_timestamps",
        ),
    ),
}
"""Suites by module, in the table's order."""

NOT_COUNTED = (
    "Not counted are the peer's suites of continuous processing and real-time mode, "
    "and of classes inside it (consumer pools, JSON, offset readers), and tests newer than Spark "
    "4.2 (a word for a whole topic's offsets)."
)
