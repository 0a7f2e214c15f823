"""The statements of the protocol that a thread executes, counted, with an act at one of them."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import spark_kafka_source.exactly_once as protocol

_FOLDER = str(Path(protocol.__file__).parent)

_DEPTH = 2

Trace = Callable[[FrameType, str, Any], Any]


class Statements:
    """Number the statements in `spark_kafka_source.exactly_once`. Call `act` before the `at`th.

    `act` gets the place: the functions of the protocol that are called there, innermost first.
    """

    def __init__(self, at: int | None, act: Callable[[list[str]], object]) -> None:
        self.first: dict[tuple[str, ...], int] = {}
        """The number of the first statement at each place. Callers of callers do not count."""
        self._count = 0
        self._at, self._act = at, act

    def __enter__(self) -> Self:
        sys.settrace(self._called)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> Trace | None:
        return self._executed if frame.f_code.co_filename.startswith(_FOLDER) else None

    def _executed(self, frame: FrameType, event: str, _: Any) -> Trace:
        if event == "line":
            self._count += 1
            place = _place(frame)
            self.first.setdefault(tuple(place[:_DEPTH]), self._count)
            if self._count == self._at:
                self._act(place)
        return self._executed


def _place(frame: FrameType | None) -> list[str]:
    found = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if str(path).startswith(_FOLDER):
            found.append(f"{path.stem}.{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return found
