"""Intended differences of the two formats, with reasons. The tests assert each behaviour."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference. `verdict` is `better` or `different`, as seen from `pykafka`."""

    verdict: str
    why: str


_NAMED = Difference("better", "the error has the name of its condition; the peer's only its text")
_AT_THE_START = Difference(
    "different",
    "refused when the query starts, and by the option's name; the peer refuses it at `load()`, but "
    "a Python data source is not told before the start that it is to be a stream",
)
_AGED_OUT = Difference(
    "different",
    "found when planned (START_OFFSET_RESET, with the option and what the log still has); the "
    "peer's tasks fail on it (COULD_NOT_READ_OFFSET_RANGE)",
)
_PLANNED_ONCE = "Spark plans a Python data source once for each `load()`, so a frame that is used "
_OPTION_NAMED = Difference("better", "the error names the option; the peer's only the bad value")

DIFFERENCES: dict[str, Difference] = {
    "available_now/the_topic_is_made_anew_meanwhile": _NAMED,
    "rate_limits/min_partitions_that_are_no_number[a]": _OPTION_NAMED,
    "rate_limits/min_partitions_that_are_no_number[1.0]": _OPTION_NAMED,
    "topic_life/a_topic_is_made_anew_while_the_stream_is_stopped": Difference(
        "better",
        "its id shows that it is another topic, and the error says so (KAFKA_DATA_LOSS."
        "PARTITIONS_DELETED); the peer sees an offset that changed, and where the topic has as "
        "many rows again it reads on in silence, without those it has not read",
    ),
    "batch/earliest_to_latest": Difference(
        "different", _PLANNED_ONCE + "again has the same rows; `load()` again has the new ones"
    ),
    "batch/records_aged_out_between_runs": Difference(
        "different",
        _PLANNED_ONCE + "again fails on records that are gone by then (KAFKA_DATA_LOSS); `load()` "
        "again starts where the log does",
    ),
    "data_loss/a_batch_fails_on_what_is_gone": _AGED_OUT,
    "data_loss/a_stream_fails_on_what_is_gone": _AGED_OUT,
    "data_loss/stress": Difference(
        "better",
        "no task fails; one of the peer's may, on a topic that was just deleted, and its own suite "
        "lets each be tried three times",
    ),
    "options/a_newer_checkpoint_is_refused": Difference(
        "different",
        "the version is that of each micro-batch's offset; the peer's is that of the file of its "
        "initial offsets",
    ),
    "options/an_end_by_one_timestamp_is_refused": Difference(
        "better", "refused, as any end of a stream is; the peer ignores it in silence"
    ),
    "options/bad_options_are_refused[an end]": _AT_THE_START,
    "options/bad_options_are_refused[an end by timestamp]": _AT_THE_START,
    "options/a_group_is_named[kafka.group.id]": Difference(
        "better", "what was read is committed to the group; the peer never commits"
    ),
    "options/offsets_behind_the_latest": Difference(
        "different",
        "a Python data source has no metrics of its own: a query's progress has the end and the "
        "latest offset of each partition, and `LagListener` the distance; the peer has the least, "
        "greatest and average of all partitions",
    ),
    "sink/progress_says_how_many_rows": Difference(
        "different",
        "in append mode: Spark refuses `update` to every Python sink, and the peer takes it; "
        "`foreachBatch` writes what an aggregation updates",
    ),
    "sink/a_batch_without_a_mode": Difference(
        "different", "Spark refuses every Python sink a batch without a mode: give `append`"
    ),
    "sink/a_topic_that_does_not_exist": Difference(
        "better", "the error names the option by which it waited; the peer's only the time"
    ),
    "sink/columns_are_found_by_their_exact_names": Difference(
        "better", "a column such as `KEY` is refused; the peer leaves it out in silence"
    ),
    "sink/a_header_without_a_key_is_refused": Difference(
        "better", "the error names the row and what is wrong; the peer's is a NullPointerException"
    ),
    "sink/a_partition_that_is_not_there_is_refused": Difference(
        "better", "the error names the row"
    ),
    "sink/a_column_of_timestamps": Difference(
        "better", "a record has its row's timestamp; the peer passes the column over"
    ),
    "ranges/empty_partitions_do_not_count": Difference(
        "better",
        "`minPartitions` is reached where other partitions have nothing to read; the peer counts "
        "those as tasks, and cuts nothing",
    ),
}
"""Differences by scenario: `suite/scenario` for all parameters, or `suite/scenario[parameters]`."""
