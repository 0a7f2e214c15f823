"""The rows of the command `doctor`."""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]
Examine = Callable[..., list[Row]]


def wrong(rows: list[Row]) -> Row:
    (found,) = [row for row in rows if row["verdict"] == "wrong"]
    assert found["remedy"]
    assert found["option"]
    return found


def of(rows: list[Row], check: str, subject: str = "") -> Row:
    return next(row for row in rows if row["check"] == check and subject in row["subject"])
