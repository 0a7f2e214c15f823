"""Fixtures of the scenarios, and the table of how they end: `--parity-table PATH`."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.parity.differences import DIFFERENCES, LEFT_OUT
from tests.parity.scenario import OURS, PEER, Follow, Source, Stream
from tests.parity.table import Outcome, render
from tests.spark_session import Start

_OUTCOMES = pytest.StashKey[list[Outcome]]()


@pytest.fixture(params=[pytest.param(PEER, marks=pytest.mark.parity_full), OURS])
def format_name(request: pytest.FixtureRequest) -> str:
    """Either format; `@pytest.mark.parametrize("format_name", [OURS])` where the peer cannot.

    The peer runs in `make parity` only: it does not change with this project.
    """
    name: str = request.param
    return name


@pytest.fixture
def source(spark: SparkSession, format_name: str) -> Source:
    """The format under test."""
    return Source(spark, format_name)


@pytest.fixture
def follow(start: Start) -> Follow:
    """Starts a stream that keeps what it reads, and stops it after the test.

    Another stream of the same test has its own checkpoint.
    """
    streams: list[Stream] = []

    def follow(frame: DataFrame, **trigger: Any) -> Stream:
        checkpoint = f"checkpoint-{len(streams)}"
        streams.append(Stream(frame, lambda writer: start(writer, checkpoint), trigger))
        return streams[-1]

    return follow


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--parity-table", type=Path, help="where to write the table of scenarios")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_OUTCOMES] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    name = _format_name(item)
    if name:
        outcome = Outcome(_scenario(item, name), name, report.passed)
        item.config.stash[_OUTCOMES].append(outcome)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    path: Path | None = session.config.getoption("--parity-table", default=None)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        outcomes = session.config.stash[_OUTCOMES]
        path.write_text(render(outcomes, DIFFERENCES, LEFT_OUT))


def _format_name(item: pytest.Item) -> str | None:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    name: str | None = parameters.get("format_name")
    return name


def _scenario(item: pytest.Item, name: str) -> str:
    """`suite/scenario[parameters]`, the format left out."""
    suite = item.path.stem.removeprefix("test_")
    scenario = item.name.removeprefix("test_")
    # A parameter's own name may contain that of a format, but is not just that.
    return suite + "/" + re.sub(rf"(\[|-){name}(-|\])", _between, scenario, count=1)


def _between(match: re.Match[str]) -> str:
    return {"[]": "", "--": "-", "[-": "[", "-]": "]"}[match[1] + match[2]]
