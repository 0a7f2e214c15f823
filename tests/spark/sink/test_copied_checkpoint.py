"""Checkpoints at another place: a copy is an error at its start, and a moved one goes on.

Two queries that begin with one checkpoint have one id, and number their micro-batches alike. Each
would take its rows for a replay of the other one's, and drop them.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark.sink.written import texts, to, writer
from tools.traffic import TIMEOUT_SECONDS, Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

MOVED = "checkpointMovedFrom"


@dataclass
class Pipeline:
    """A query that writes the lines of a files, and ends."""

    spark: SparkSession
    target: Events
    directory: Path

    def has(self, name: str, *rows: str) -> None:
        """Replace the files by one."""
        shutil.rmtree(self.files, ignore_errors=True)
        self.files.mkdir()
        (self.files / name).write_text("".join(f"{row}\n" for row in rows))

    @property
    def files(self) -> Path:
        return self.directory / "files"

    def at(self, checkpoint: str) -> str:
        return str(self.directory / checkpoint)

    def run(self, checkpoint: str, **more: str) -> str:
        """Return the text of the query's error, or none."""
        lines = self.spark.readStream.text(str(self.files))
        options = to(self.target, deliveryGuarantee="exactly-once", **more)
        writing = lines.writeStream.format("pykafka").options(**options)
        return ended(writing.option("checkpointLocation", checkpoint))

    def copy(self, name: str) -> str:
        shutil.copytree(self.directory / "a", self.directory / name)
        return self.at(name)


def ended(writing: DataStreamWriter) -> str:
    """Run a query to its end. Return the text of its error, or none."""
    query = writing.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(TIMEOUT_SECONDS)
    except StreamingQueryException as error:
        return str(error)
    finally:
        query.stop()
    return ""


@pytest.fixture
def pipeline(spark: SparkSession, events: Events, tmp_path: Path) -> Pipeline:
    """A pipeline that has run once with its checkpoint at `a`."""
    events.create(2)
    found = Pipeline(spark, events, tmp_path)
    found.has("1", "a1")
    assert found.run(found.at("a")) == ""
    return found


@pytest.mark.parametrize("rows", [["b1"], []], ids=["as many rows", "no rows"])
@pytest.mark.parametrize("later", [1, 2], ids=["the same micro-batch", "an earlier micro-batch"])
def test_a_copy_is_an_error_at_each_start(rows: list[str], later: int, pipeline: Pipeline) -> None:
    """Otherwise its rows are dropped without a word."""
    copy = pipeline.copy("b")
    expected = ["a1"]
    for day in range(later):
        pipeline.has(f"later-{day}", f"later-{day}")
        assert pipeline.run(pipeline.at("a")) == ""
        expected.append(f"later-{day}")
    pipeline.has("of the copy", *rows)
    for _ in range(2):
        error = pipeline.run(copy)
        assert f"was at '{pipeline.at('a')}', and this one is at '{copy}': a copy?" in error
        assert texts(pipeline.target) == expected
    other = {"transactionalIdPrefix": pipeline.target.name.replace(".", "-")[-40:]}
    assert pipeline.run(copy, **other) == ""  # As the error says.
    assert texts(pipeline.target) == sorted(expected + rows)


def test_a_moved_checkpoint_goes_on_once_the_user_says_so(pipeline: Pipeline) -> None:
    moved, old = pipeline.copy("b"), pipeline.at("a")
    pipeline.has("2", "a2")
    assert f"set '{MOVED}' to '{old}'" in pipeline.run(moved)
    assert "a copy?" in pipeline.run(moved, **{MOVED: pipeline.at("elsewhere")})
    assert pipeline.run(moved, **{MOVED: f"file://{old}/"}) == ""
    pipeline.has("3", "a3")
    assert pipeline.run(moved) == ""
    assert "a copy?" in pipeline.run(old)
    assert texts(pipeline.target) == ["a1", "a2", "a3"]


def test_one_location_may_be_spelt_in_many_ways(pipeline: Pipeline) -> None:
    old = pipeline.at("a")
    expected = ["a1"]
    for spelling in (f"{old}/", f"file:{old}", f"file://{old}//", "//a".join(old.rsplit("/a", 1))):
        expected.append(f"a{len(expected) + 1}")
        pipeline.has(expected[-1], expected[-1])
        assert pipeline.run(spelling) == ""
    assert texts(pipeline.target) == expected


@pytest.fixture
def default(spark: SparkSession) -> Iterator[Any]:
    """A function that sets the directory of all checkpoints, which no sink is told."""
    name = "spark.sql.streaming.checkpointLocation"
    before = spark.conf.get(name)
    yield lambda location: spark.conf.set(name, location)
    spark.conf.set(name, before or "")


def test_a_query_whose_decisions_name_no_location_goes_on(pipeline: Pipeline, default: Any) -> None:
    """As after an upgrade. From then on they name it."""
    default(pipeline.at("c"))
    lines = pipeline.spark.readStream.text(str(pipeline.files)).writeStream.queryName("q")
    options = to(pipeline.target, deliveryGuarantee="exactly-once")
    assert ended(lines.format("pykafka").options(**options)) == ""
    for name in ("2", "3"):
        pipeline.has(name, name)
        shutil.copytree(pipeline.directory / "c", pipeline.directory / f"before-{name}")
        assert pipeline.run(pipeline.at("c/q")) == ""
    assert "a copy?" in pipeline.run(pipeline.at("before-3/q"))
    assert texts(pipeline.target) == ["2", "3", "a1", "a1"]


def test_where_spark_tells_no_location_nothing_is_compared(
    pipeline: Pipeline, default: Any, spark: SparkSession
) -> None:
    """So the page says. A checkpoint that is moved then goes on without a word from the user."""
    options = to(pipeline.target, deliveryGuarantee="exactly-once")

    def save(frame: DataFrame, _: int) -> None:
        writer(frame, options).save()

    lines = spark.readStream.text(str(pipeline.files))
    for place in ("c", "d"):
        default(pipeline.at(place))
        by_conf = lines.writeStream.format("pykafka").options(**options).queryName("q")
        assert ended(by_conf) == ""
        in_foreach = lines.writeStream.foreachBatch(save)
        assert ended(in_foreach.option("checkpointLocation", pipeline.at(f"{place}-2"))) == ""
        for name in ("c", "c-2"):
            with suppress(FileExistsError):
                new = name.replace("c", "d")
                shutil.copytree(pipeline.directory / name, pipeline.directory / new)
        pipeline.has(f"after-{place}", f"after-{place}")
    assert texts(pipeline.target) == ["a1"] * 3 + ["after-c"] * 2
