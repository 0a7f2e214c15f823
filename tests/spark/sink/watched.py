"""The data source with a commit that a test watches, and stops or kills at one of its steps."""

import json
import logging
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from spark_kafka_source.exactly_once import committing
from spark_kafka_source.spark.data_source import KafkaDataSource
from spark_kafka_source.spark.sink.writer import KafkaWriter
from tests.exactly_once.steps import Step, SteppedRunner

FORMAT = "watched_pykafka"
OPTION = "watch"


@dataclass(frozen=True, slots=True)
class Watch:
    """The orders of a watched commit. Its log is in a file of `directory`.

    At the step of this name it stands still until SIGCONT, once. If `group` is given, it kills that
    process group and itself instead, as a loss of power would.
    """

    directory: str
    step: str = ""
    group: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @property
    def log(self) -> str:
        """The warnings of all commits so far."""
        path = self._log_path
        return path.read_text() if path.exists() else ""

    @property
    def is_there(self) -> bool:
        """Whether a commit has come to the step."""
        return self._mark.exists()

    @property
    def _log_path(self) -> Path:
        return Path(self.directory, "log")

    @property
    def _mark(self) -> Path:
        return Path(self.directory, f"at-{self.step}")

    def reached(self, step: Step) -> None:
        if step.name != self.step or self.is_there:
            return
        self._mark.touch()
        if self.group:
            os.killpg(self.group, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGSTOP)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch all commits of this process meanwhile."""
        _now[:] = [self]
        logger, handler = (
            logging.getLogger("spark_kafka_source"),
            logging.FileHandler(self._log_path),
        )
        logger.addHandler(handler)
        watched = partial(SteppedRunner, reached=_reached)
        try:
            with patch.object(committing, "StepRunner", watched):
                yield
        finally:
            logger.removeHandler(handler)
            handler.close()


# A process keeps its connections for the next commit, and with them the function to be called.
_now: list[Watch] = []


def _reached(step: Step) -> None:
    _now[0].reached(step)


class WatchedWriter(KafkaWriter):
    watch: Watch

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: N803 - Spark's name
    ) -> None:
        with self.watch.watching():
            super().commit(messages, batchId)

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int | None = None,  # noqa: N803 - Spark's name
    ) -> None:
        with self.watch.watching():  # The next commit may take over the connections.
            super().abort(messages, batchId)


class WatchedDataSource(KafkaDataSource):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__({name: options[name] for name in options if name.lower() != OPTION})
        self._watch = Watch(**json.loads(options[OPTION]))

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _writer(self, schema: StructType) -> KafkaWriter:
        found = super()._writer(schema)
        found.__class__ = WatchedWriter
        assert isinstance(found, WatchedWriter)
        found.watch = self._watch
        return found
