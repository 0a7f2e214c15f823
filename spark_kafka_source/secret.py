"""Texts that must not be seen: passwords, keys, tokens."""

from typing import Any


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
