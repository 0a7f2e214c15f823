"""Checkpoints that were restored from an older copy: no row is lost or doubled without a word.

A job reads a directory of files, a day's files at a time. `cp -r` copies its checkpoint between two
days. Spark then gives the number of a micro-batch that is written to other rows.

`docs/contributors/exactly-once-protocol.md` says: "These are errors: [...] a checkpoint that was
rolled back".
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.spark.sink.watched import FORMAT, OPTION, Watch, WatchedDataSource
from tests.spark.sink.written import texts, to
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

DIFFERS = "ReplayDiffersError"
OLDER = "PrefixInUseError"


@dataclass
class Job:
    """A query that writes the lines of all files, and ends."""

    spark: SparkSession
    start: Start
    target: Events
    directory: Path
    options: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.target.create(2)
        for each in (self.files, self.watched):
            each.mkdir()

    @property
    def files(self) -> Path:
        return self.directory / "files"

    @property
    def watched(self) -> Path:
        return self.directory / "watched"

    @property
    def log(self) -> str:
        return Watch(str(self.watched)).log

    def has(self, name: str, *rows: str) -> None:
        """Write a file."""
        (self.files / name).write_text("".join(f"{row}\n" for row in rows))

    def lacks(self, name: str) -> None:
        """Delete a file."""
        (self.files / name).unlink(missing_ok=True)

    def run(self) -> str:
        """Run the query on the checkpoint. Return the text of its error, or none."""
        options = to(
            self.target,
            deliveryGuarantee="exactly-once",
            **{OPTION: Watch(str(self.watched)).to_json(), **self.options},
        )
        frame = self.spark.readStream.text(str(self.files))
        writing = frame.writeStream.format(FORMAT).options(**options).trigger(availableNow=True)
        query = self.start(writing)
        try:
            assert query.awaitTermination(TIMEOUT_SECONDS)
        except StreamingQueryException as error:
            return str(error)
        return ""

    def day(self, name: str, *rows: str) -> None:
        """Write a file's rows, which must succeed, and copy the checkpoint after that."""
        self.has(name, *rows)
        assert self.run() == ""
        shutil.copytree(self.directory / "checkpoint", self.directory / f"after-{name}")

    def restore(self, name: str) -> None:
        """Go back to the checkpoint's copy of the day's end."""
        shutil.rmtree(self.directory / "checkpoint")
        shutil.copytree(self.directory / f"after-{name}", self.directory / "checkpoint")

    def written(self) -> list[str]:
        return texts(self.target)


@pytest.fixture
def job(spark: SparkSession, events: Events, start: Start, tmp_path: Path) -> Job:
    """A job that has not run yet."""
    spark.dataSource.register(WatchedDataSource)
    return Job(spark, start, events, tmp_path)


@pytest.fixture
def two_days(job: Job) -> Job:
    """A job that has run on two days. Its checkpoint is the one of the first day's end."""
    job.day("a", "a1", "a2")
    job.day("b", "b1", "b2")
    job.restore("a")
    return job


# -- by one micro-batch ----------------------------------------------------------------------------


def test_more_rows_are_an_error_at_each_start_until_the_checkpoint_is_put_back(
    two_days: Job,
) -> None:
    """Otherwise day three's rows are dropped without a word."""
    job = two_days
    job.has("c", "c1")
    for _ in range(2):
        error = job.run()
        assert DIFFERS in error or job.written() == ["a1", "a2", "b1", "b2", "c1"], (
            "lost in silence"
        )
        assert DIFFERS in error
        assert "put back the checkpoint that was in use last" in error
        assert job.written() == ["a1", "a2", "b1", "b2"]
    job.restore("b")  # As the error says.
    assert job.run() == ""
    assert job.written() == ["a1", "a2", "b1", "b2", "c1"]


@pytest.mark.parametrize(
    "rows", [["c1"], ["c1", "longer"]], ids=["fewer rows", "as many rows with more bytes"]
)
def test_other_counts_are_an_error_unless_they_are_accepted(rows: list[str], two_days: Job) -> None:
    job = two_days
    job.lacks("b")
    job.has("c", *rows)
    assert DIFFERS in job.run()
    job.options["doubtfulReplays"] = "accept"
    assert job.run() == ""
    assert job.log == ""
    assert job.written() == ["a1", "a2", "b1", "b2"]


def test_as_many_other_rows_are_a_doubt(two_days: Job) -> None:
    """Only their fingerprint tells them."""
    job = two_days
    job.lacks("b")
    job.has("c", "c1", "c2")
    job.options["doubtfulReplays"] = "fail"
    for _ in range(2):
        assert "DoubtfulReplayError" in job.run()
    job.options["doubtfulReplays"] = "warn"
    assert job.run() == ""
    assert "is a replay with 2 rows (4 bytes of keys and values, fingerprint " in job.log
    assert job.written() == ["a1", "a2", "b1", "b2"]


def test_the_same_rows_again_are_no_doubt(job: Job) -> None:
    job.options["doubtfulReplays"] = "fail"
    job.day("a", "a1", "a2")
    job.day("b", "b1", "b2")
    job.restore("a")
    assert job.run() == ""
    job.has("c", "c1")
    assert job.run() == ""
    assert job.log == ""
    assert job.written() == ["a1", "a2", "b1", "b2", "c1"]


# -- by two micro-batches --------------------------------------------------------------------------


def test_by_two_micro_batches_any_rows_are_an_error(two_days: Job) -> None:
    job = two_days
    job.restore("b")
    job.day("c", "c1", "c2")
    rows = {"b": ["b1", "b2"], "c": ["c1", "c2"], "d": ["d1"]}
    for names in (["b", "c", "d"], ["d"], ["c"]):  # More rows than `b`, fewer and as many.
        job.restore("a")
        for name in rows:
            job.lacks(name)
        for name in names:
            job.has(name, *rows[name])
        error = job.run()
        assert OLDER in error
        assert "The checkpoint was rolled back" in error
        assert job.written() == ["a1", "a2", "b1", "b2", "c1", "c2"]
