"""Fixtures of trials: the number of rounds, the seed, and the table of figures."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.reliability.figures import Figure, render

_FEW = 1
_FIGURES = pytest.StashKey[list[Figure]]()
_SEED = pytest.StashKey[int]()


@dataclass(frozen=True, slots=True)
class Trial:
    """A test's number of rounds and its random choices. The same `--seed` gives the same ones."""

    rounds: int
    chance: random.Random
    test: str
    figures: list[Figure]

    def report(self, promise: str, done: str, found: str) -> None:
        """Add a row to the table. Call it before the test may fail."""
        print(f"{promise}: {done}: {found}")
        self.figures.append(Figure(promise, done, found, self.test))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, help=f"how often each fault is made, else {_FEW} times")
    parser.addoption("--seed", type=int, help="of the random choices, as an earlier run showed it")
    parser.addoption("--reliability-table", type=Path, help="where to write the table of figures")


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--seed", default=None)
    config.stash[_SEED] = random.randrange(1 << 32) if given is None else given
    config.stash[_FIGURES] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    path: Path | None = config.getoption("--reliability-table", default=None)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        figures = config.stash[_FIGURES]
        path.write_text(render(figures, config.stash[_SEED]))


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> Trial:
    """Trial of the test."""
    config, node = request.config, request.node
    seed = config.stash[_SEED]
    print(f"--seed {seed}")
    return Trial(
        rounds=config.getoption("--rounds", default=None) or _FEW,
        chance=random.Random(f"{seed} {node.name}"),
        test=node.nodeid,
        figures=config.stash[_FIGURES],
    )


@pytest.fixture(scope="package")
def own_kafka3() -> Iterator[LocalKafka]:
    """Three brokers, each in its own rack. These tests may end them."""
    with LocalKafka(3, racks=("a", "b", "c")) as kafka:
        yield kafka


@pytest.fixture
def all_brokers(own_kafka3: LocalKafka) -> Iterator[LocalKafka]:
    """Three brokers, all of which run before the test and after it."""
    own_kafka3.start()
    yield own_kafka3
    own_kafka3.start()
