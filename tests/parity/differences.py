"""Where the two formats differ on purpose, and which scenarios of the peer's are not here, and why.

The tests assert what either format does; this says which of the two is better and why.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """`verdict` is `better` or `different`, seen from `pykafka`."""

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
    "rate_limits/a_number_of_partitions_that_is_none[a]": _OPTION_NAMED,
    "rate_limits/a_number_of_partitions_that_is_none[1.0]": _OPTION_NAMED,
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
    "options/an_end_by_one_timestamp": Difference(
        "better", "refused, as any end of a stream is; the peer ignores it in silence"
    ),
    "options/bad_options[an end]": _AT_THE_START,
    "options/bad_options[an end by timestamp]": _AT_THE_START,
    "options/group[kafka.group.id]": Difference(
        "better", "what was read is committed to the group; the peer never commits"
    ),
    "options/offsets_behind_latest": Difference(
        "different",
        "a Python data source has no metrics of its own: a query's progress has the end and the "
        "latest offset of each partition, and `LagListener` the distance; the peer has the least, "
        "greatest and average of all partitions",
    ),
    "ranges/empty_partitions_do_not_count": Difference(
        "better",
        "`minPartitions` is reached where other partitions have nothing to read; the peer counts "
        "those as tasks, and cuts nothing",
    ),
}
"""By scenario: `suite/scenario`, with all its parameters, or `suite/scenario[parameters]`."""

LEFT_OUT: dict[str, str] = {
    "all: each suite again with another plan and reader of offsets (3 of 4 runs)": "the peer has "
    "two implementations of each; this runs those that it takes by default",
    "start_positions: a word for a whole topic (2)": "newer than the peer of Spark 4.2",
    "topic_life: continuous processing (2)": "Spark has none for Python data sources",
    "batch: which plan a relation has (2)": "the peer has two implementations, chosen by a setting",
    "data_loss: continuous processing (1)": "Spark has none for Python data sources",
    "data_loss: the second stream and batch reader (2)": "the peer has two of each",
    "options: which plan a stream has (2)": "the peer has two implementations",
    "options: initial offsets of Spark 2.1 and 2.4, and their leading zero byte (3)": "files of "
    "the peer's own that only its sources hold",
    "options: offsets compared and serialised": "methods of the peer's JVM class of offsets",
    "options: metrics without an offset (2)": "a method of the peer's JVM class of streams",
    "ranges: tasks sent to executors (1)": "for the peer's cached JVM consumers; Spark lets no "
    "Python data source choose an executor",
}
"""The peer's scenarios that are not here, by `suite: what`, and the reason."""
