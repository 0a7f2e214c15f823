"""Secret texts (passwords, keys and tokens), and the form of texts in errors."""

from typing import Any

REDACTED = "*********(redacted)"
"""The text that Spark shows in place of a secret."""

_MOST_SHOWN = 100


class Secret:
    """A text that no repr, log line or traceback can show.

    Two secrets are equal if their texts are, so that settings with a secret can be compared. Only
    `reveal` returns the text. Call it where the text goes on the wire or into a library, and keep
    no other copy.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself."""
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
    """Return a text in the form for errors: quoted, and cut if long. A secret is redacted."""
    if isinstance(text, Secret):
        return REDACTED
    if isinstance(text, int):
        return str(text)
    return repr(text) if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]!r}..."


def printable(text: str) -> str:
    """Escape characters that end a log line or steer a terminal, with Python's escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
