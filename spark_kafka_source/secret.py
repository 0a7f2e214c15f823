"""Texts that must not be seen, passwords, keys and tokens, and how others are shown."""

from typing import Any

REDACTED = "*********(redacted)"
"""What Spark shows in the place of a text that must not be seen."""

_MOST_SHOWN = 100


class Secret:
    """Wraps a text so that no repr, log line or traceback of what holds it can show it.

    Equal where the texts are, so that settings that hold one can be compared. Only `reveal` gives
    the text away; call it where it goes on the wire or into a library, and keep no other copy.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return Secret, (self._text,)


def shown(text: "str | int | Secret") -> str:
    """As errors show it: in quotes, cut where it is long; of a secret, that there is one."""
    if isinstance(text, Secret):
        return REDACTED
    if isinstance(text, int):
        return str(text)
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}..."


def printable(text: str) -> str:
    """Without what can end a line of a log, or steer a terminal: that is shown as Python has it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
