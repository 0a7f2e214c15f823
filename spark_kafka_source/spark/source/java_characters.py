r"""The characters of topic names that Java's classes, such as `\w`, `\p{Alpha}` or `\h`, match.

A topic's name has letters and digits of ASCII, `.`, `_` and `-`, and no other character. So each
class of Java is a set of these. The module also has the characters of Java's escapes.
"""

import re
import unicodedata
from collections.abc import Iterator
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, hexdigits
from typing import TypeAlias

Characters: TypeAlias = frozenset[str]

TOPIC_CHARACTERS: Characters = frozenset(ascii_letters + digits + "._-")
NOTHING: Characters = frozenset()

CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
NUMBERED = re.compile(
    r"0(?P<octal>[0-3][0-7]{2}|[0-7]{1,2})"
    r"|(?:x(?P<two>[0-9a-fA-F]{2})|x\{0*(?P<any>(?:10|[0-9a-fA-F])?[0-9a-fA-F]{1,4})\}"
    r"|u(?P<four>[0-9a-fA-F]{4}))"
    r"|c(?P<control>.)",
    re.DOTALL,
)
"""A character by its number, or a control character by its letter, after the backslash."""

_PUNCTUATION = frozenset("._-")
_LETTERS, _DIGITS = frozenset(ascii_letters), frozenset(digits)
_LOWER, _UPPER = frozenset(ascii_lowercase), frozenset(ascii_uppercase)
_WORD = _LETTERS | _DIGITS | {"_"}

_SHORTHANDS = {"d": _DIGITS, "w": _WORD, "s": NOTHING, "h": NOTHING, "v": NOTHING}

# Properties of ASCII, then some of Unicode.
_PROPERTIES = {
    "Lower": _LOWER, "Upper": _UPPER, "Alpha": _LETTERS, "Digit": _DIGITS,
    "Alnum": _LETTERS | _DIGITS, "Punct": _PUNCTUATION, "Graph": TOPIC_CHARACTERS,
    "Print": TOPIC_CHARACTERS, "ASCII": TOPIC_CHARACTERS, "XDigit": frozenset(hexdigits),
    "Blank": NOTHING, "Space": NOTHING, "Cntrl": NOTHING,
    "IsLowercase": _LOWER, "IsUppercase": _UPPER, "IsAlphabetic": _LETTERS, "IsLetter": _LETTERS,
    "IsLatin": _LETTERS, "IsDigit": _DIGITS, "IsPunctuation": _PUNCTUATION,
    "IsWhite_Space": NOTHING,
}  # fmt: skip
_CATEGORY = re.compile(
    "(?:Is|gc=|general_category=)?(L[ulmo]?|M[nec]?|N[dlo]?|Z[slp]?|C[cf]?|P[dsepco]?|S[mcko]?)"
)


def numbered(match: "re.Match[str]") -> str:
    """Return the character of a match of `NUMBERED`."""
    if match["control"]:
        return chr(ord(match["control"]) ^ 64)
    if match["octal"]:
        return chr(int(match["octal"], 8))
    return chr(int(match["two"] or match["any"] or match["four"], 16))


def of_shorthand(letter: str) -> Characters | None:
    r"""Return the characters that `\letter` matches; None if it is not `\d`, `\D` or the like."""
    characters = _SHORTHANDS.get(letter.lower())
    return characters if characters is None or letter.islower() else TOPIC_CHARACTERS - characters


def of_property(name: str) -> Characters | None:
    r"""Return the characters that `\p{name}` matches; None if the name is unknown here."""
    category = _CATEGORY.fullmatch(name)
    if category is None:
        return _PROPERTIES.get(name)
    return frozenset(
        char for char in TOPIC_CHARACTERS if unicodedata.category(char).startswith(category[1])
    )


def either_case(characters: Characters) -> Characters:
    """Return the characters with the same letters in the other case."""
    return characters | {letter.swapcase() for letter in characters & _LETTERS}


def as_class(characters: Characters) -> str:
    """Return a class for `re` that matches these and no other characters of a topic's name."""
    return f"[{''.join(_ranges(sorted(characters)))}]" if characters else r"[^\s\S]"


def _ranges(characters: list[str]) -> Iterator[str]:
    begin = 0
    for at, char in enumerate(characters):
        if at + 1 == len(characters) or ord(characters[at + 1]) > ord(char) + 1:
            first = re.escape(characters[begin])
            yield first if begin == at else f"{first}-{re.escape(char)}"
            begin = at + 1
