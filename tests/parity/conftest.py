"""Fixtures of the scenarios, and the table of their results (`--parity-table PAGE`)."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.parity.differences import DIFFERENCES
from tests.parity.scenario import OURS, PEER, Follow, Sink, Source, Stream
from tests.parity.table import (
    FAILS,
    MARKS,
    NOT_RUN,
    Outcome,
    instances,
    outcome,
    render,
)
from tests.spark_session import Start

_OUTCOMES = pytest.StashKey[list[Outcome]]()


@pytest.fixture(params=[pytest.param(PEER, marks=pytest.mark.parity_full), OURS])
def format_name(request: pytest.FixtureRequest) -> str:
    """Each format. Use `@pytest.mark.parametrize("format_name", [OURS])` if the peer cannot run.

    The peer runs in `make parity` only, since it does not change with this project.
    """
    name: str = request.param
    return name


@pytest.fixture
def source(spark: SparkSession, format_name: str) -> Source:
    """Source in the format under test."""
    return Source(spark, format_name)


@pytest.fixture
def sink(format_name: str) -> Sink:
    """Sink in the format under test."""
    return Sink(format_name)


@pytest.fixture
def follow(start: Start) -> Follow:
    """Function that starts a stream and keeps its rows. The stream stops after the test.

    Another stream of the same test has its own checkpoint.
    """
    streams: list[Stream] = []

    def follow(frame: DataFrame, **trigger: Any) -> Stream:
        checkpoint = f"checkpoint-{len(streams)}"
        streams.append(Stream(frame, lambda writer: start(writer, checkpoint), trigger))
        return streams[-1]

    return follow


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--parity-table",
        type=Path,
        help=f"write the table of scenarios into this file, between {MARKS.begin} and {MARKS.end}",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_OUTCOMES] = []
    path = _table_path(config)
    if path:
        try:
            MARKS.split(path)  # Fail before the scenarios run, not after.
        except (OSError, ValueError) as error:
            raise pytest.UsageError(f"--parity-table: {error}") from error


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    ended = outcome(item.nodeid, passed=report.passed)
    if ended:
        item.config.stash[_OUTCOMES].append(ended)
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    path = _table_path(session.config)
    if path and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        outcomes = session.config.stash[_OUTCOMES]
        found = instances(outcomes, DIFFERENCES)
        MARKS.write(path, render(found))
        if any(each.verdict.word in (FAILS, NOT_RUN) for each in found):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _table_path(config: pytest.Config) -> Path | None:
    path: Path | None = config.getoption("--parity-table", default=None)
    return path
