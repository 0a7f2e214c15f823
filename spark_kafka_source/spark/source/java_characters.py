r"""Which characters of a topic's name a class of Java's takes: `\w`, `\p{Alpha}`, `\h`.

A topic's name has letters and digits of ASCII, `.`, `_` and `-`, and no other character, so that a
class, however Java spells it, is a set of these. And which character an escape of Java's is.
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
"""A character by its number, or a control by its letter, after the backslash."""

_PUNCTUATION = frozenset("._-")
_LETTERS, _DIGITS = frozenset(ascii_letters), frozenset(digits)
_LOWER, _UPPER = frozenset(ascii_lowercase), frozenset(ascii_uppercase)
_WORD = _LETTERS | _DIGITS | {"_"}

_SHORTHANDS = {"d": _DIGITS, "w": _WORD, "s": NOTHING, "h": NOTHING, "v": NOTHING}

# Those of ASCII, then some of Unicode's.
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


def numbered(found: "re.Match[str]") -> str:
    """The character that `NUMBERED` found."""
    if found["control"]:
        return chr(ord(found["control"]) ^ 64)
    if found["octal"]:
        return chr(int(found["octal"], 8))
    return chr(int(found["two"] or found["any"] or found["four"], 16))


def of_shorthand(letter: str) -> Characters | None:
    r"""Those that `\letter` takes, if it is one of `\d`, `\D` and the like."""
    taken = _SHORTHANDS.get(letter.lower())
    return taken if taken is None or letter.islower() else TOPIC_CHARACTERS - taken


def of_property(name: str) -> Characters | None:
    r"""Those that `\p{name}` takes, if it is known here."""
    found = _CATEGORY.fullmatch(name)
    if found is None:
        return _PROPERTIES.get(name)
    return frozenset(
        each for each in TOPIC_CHARACTERS if unicodedata.category(each).startswith(found[1])
    )


def either_case(characters: Characters) -> Characters:
    """These, and the same letters in the other case."""
    return characters | {each.swapcase() for each in characters & _LETTERS}


def as_class(taken: Characters) -> str:
    """A class of Python's that takes these and no other character of a topic's name."""
    return f"[{''.join(_ranges(sorted(taken)))}]" if taken else r"[^\s\S]"


def _ranges(taken: list[str]) -> Iterator[str]:
    begin = 0
    for at, each in enumerate(taken):
        if at + 1 == len(taken) or ord(taken[at + 1]) > ord(each) + 1:
            first = re.escape(taken[begin])
            yield first if begin == at else f"{first}-{re.escape(each)}"
            begin = at + 1
