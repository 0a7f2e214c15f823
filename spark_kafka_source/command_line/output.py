"""Output of commands: tables for people, one JSON object per line for programs."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence

from spark_kafka_source.secret import printable

BASE64 = "_base64"
"""The suffix of a JSON field in base64, for bytes that are not UTF-8."""

_GAP = "  "
_NOTHING = "-"
_TO_THE_END = "\x1b[K"


class Output:
    """Standard output as tables or as JSON, and notes on standard error."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        # A terminal without UTF-8 gets escapes, not an error.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text file

    def document(self, fields: Mapping[str, object]) -> None:
        """Write one JSON object on one line."""
        self.line(json.dumps(fields, allow_nan=False))

    def line(self, text: str) -> None:
        """Write one line as it is."""
        sys.stdout.write(f"{text}\n")

    def note(self, text: str) -> None:
        """Write a remark to standard error."""
        sys.stderr.write(f"{printable(text)}\n")

    def progress(self, text: str) -> None:
        """Show the progress of a command, in place of the last one. Only a terminal shows it."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{printable(text)}{_TO_THE_END}")
            sys.stderr.flush()

    def flush(self) -> None:
        """Show all that was written."""
        sys.stdout.flush()

    def rows(
        self, rows: Iterable[Mapping[str, object]], columns: Sequence[str], if_none: str = ""
    ) -> None:
        """Write rows: as JSON with all fields, or as a table of the `columns` that are not empty.

        Without rows, write `if_none` as a note.
        """
        rows = list(rows)
        if not rows and if_none:
            self.note(if_none)
        if self.as_json:
            for row in rows:
                self.document(row)
        else:
            for line in table(rows, columns):
                self.line(line)


def table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> list[str]:
    """Return a header and aligned lines, with numbers to the right; nothing without rows."""
    shown = [name for name in columns if any(row[name] not in (None, "") for row in rows)]
    cells = [[name.replace("_", "-").upper() for name in shown]]
    cells += [[_cell(row[name]) for name in shown] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    to_the_right = [all(_is_number(row[name]) for row in rows) for name in shown]
    return [
        _GAP.join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_the_right, strict=True)
        ).rstrip()
        for line in cells
        if shown
    ]


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(map(_cell, value)) or _NOTHING
    return _NOTHING if value in (None, "") else printable(str(value))
