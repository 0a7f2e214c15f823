r"""Java's regular expressions, as `format("kafka")` takes them, translated for Python's `re`.

https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Pattern.html

A translated pattern matches the same topic names as in Java. A pattern without an equal in `re`,
or without a sure one, is refused. Python's own `(?P<name>...)` and `(?P=name)` are taken, too.
The module is long because it is one translator with a method for each construct.
"""

import re
from collections.abc import Callable
from string import ascii_letters, digits
from typing import NamedTuple

from spark_kafka_source.spark.source.java_characters import (
    CONTROLS,
    NOTHING,
    NUMBERED,
    TOPIC_CHARACTERS,
    Characters,
    as_class,
    either_case,
    numbered,
    of_property,
    of_shorthand,
)

# No name has more than 249 characters. More repetitions never match, whatever their number.
_MOST_REPEATED = 250
_LONGEST_COUNT = 2**31 - 1
_DEEPEST = 50

_BOUNDARIES = {"A": r"\A", "G": r"\A", "Z": r"\Z", "z": r"\Z", "b": r"\b", "B": r"\B"}
_QUANTIFIER = re.compile(
    r"(?:[*+?]|\{(?P<least>[0-9]{1,10})(?:(?P<comma>,)(?P<most>[0-9]{0,10}))?\})(?P<kind>[?+]?)"
)
_QUOTED = re.compile(r"\\Q(?P<text>.*?)(?:\\E|\Z)|\\[^Q]|[^\\]+|\\", re.DOTALL)
_GROUP = re.compile(
    r"\?(?:(?P<plain>[:=!>]|<[=!])"
    r"|(?:<(?P<java>[a-zA-Z][a-zA-Z0-9]*)|P<(?P<python>[a-zA-Z_][a-zA-Z0-9_]*))>"
    r"|P=(?P<reference>[a-zA-Z_][a-zA-Z0-9_]*)\)"
    r"|(?P<on>[imsuxU]*)(?:-(?P<off>[imsuxU]+))?(?P<end>[:)]))"
)
_CAPTURES = re.compile(r"\((?!\?)|\(\?P<")
_NAMED = re.compile(r"k<([a-zA-Z][a-zA-Z0-9]*)>")
_PROPERTY = re.compile(r"([A-Z])|\{([A-Za-z_=]{1,40})\}")
_LEFT_OUT = re.compile("(?:[ \t\n\r\f\v]|#[^\n\r\x85\u2028\u2029]*)*")


class PatternError(ValueError):
    """A refused pattern. `found` has `{}` for each of the `parts`. `instead` is the advice."""

    def __init__(self, found: str, instead: str, *parts: str) -> None:
        super().__init__(found, instead, *parts)
        self.found, self.instead, self.parts = found, instead, parts


def compiled(pattern: str) -> "re.Pattern[str]":
    """Return a pattern whose `search` does what `java.util.regex.Matcher.find` does.

    Raises `PatternError` for a pattern that Java refuses, or that Python cannot have.
    """
    try:
        return re.compile(_Translator(_unquoted(pattern)).all())
    except (re.error, OverflowError, RecursionError) as error:
        reason = error.msg if isinstance(error, re.error) else type(error).__name__
        instead = "Python's `re` must be able to have the pattern"
        raise PatternError("{}", instead, reason) from None


def _unquoted(pattern: str) -> str:
    r"""Return the pattern with an escape for each character between `\Q` and `\E`."""
    return _QUOTED.sub(
        lambda match: (
            match[0]
            if match["text"] is None
            else "".join(f"\\x{{{ord(char):x}}}" for char in match["text"])
        ),
        pattern,
    )


class _Group(NamedTuple):
    """An open group: its head, the flags around it, and the number of captures before it."""

    head: str
    flags: frozenset[str]
    captured: int


class _Translator:
    """One reading of a pattern, from left to right. Only classes in classes take recursion."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._unicode_case = False
        self._open: list[_Group] = []
        self._depth = 0
        self._captured = 0
        self._names: set[str] = set()
        self._referenced = self._captures_vary = False

    def all(self) -> str:
        """Return the pattern for Python."""
        translated = []
        while self._more():
            translated.append(self._next())
        if self._open:
            raise PatternError("a group is not closed", "End it with ')'")
        if self._referenced and self._captures_vary:
            raise PatternError(
                "a back reference may mean something else beside captures that are repeated or "
                "looked around for, and beside possessive quantifiers",
                "Write out what may be repeated",
            )
        if not self._referenced:
            # Without references captures are of no use, and `re` may miscount in atomic groups.
            translated = ["(?:" if _CAPTURES.match(part) else part for part in translated]
        return "".join(translated)

    def _next(self) -> str:
        char = self._take()
        read = _READERS.get(char)
        return read(self) if read else self._repeated(self._literal(char))

    # -- characters --------------------------------------------------------------------------------

    def _more(self) -> bool:
        """Skip what (?x) leaves out. Return whether anything follows."""
        if "x" in self._flags:
            self._match(_LEFT_OUT)
        return self._at < len(self._pattern)

    def _peek(self, ahead: int = 0) -> str:
        return self._pattern[self._at + ahead : self._at + ahead + 1]

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _accept(self, text: str) -> bool:
        is_next = self._pattern.startswith(text, self._at)
        self._at += len(text) if is_next else 0
        return is_next

    def _match(self, expression: "re.Pattern[str]") -> "re.Match[str] | None":
        match = expression.match(self._pattern, self._at)
        self._at = match.end() if match else self._at
        return match

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            found = f"groups or classes are nested more than {_DEEPEST} deep"
            raise PatternError(found, "Nest them less")

    def _single(self, char: str) -> Characters:
        if "i" not in self._flags:
            return frozenset(char)
        if self._unicode_case and not char.isascii():
            found = "{} may be a letter of ASCII by (?iu)"
            raise PatternError(found, "Leave 'u' and 'U' out", char)
        return either_case(frozenset(char))

    def _literal(self, char: str) -> str:
        characters = self._single(char)
        return re.escape(char) if len(characters) == 1 else as_class(characters)

    # -- groups ------------------------------------------------------------------------------------

    def _begin(self) -> str:
        group = self._match(_GROUP)
        if group is None and self._peek() == "?":
            what = self._pattern[self._at - 1 : self._at + 3]
            raise PatternError("{} begins no group of Java's", "Use '(?:...)'", what)
        if group and group["reference"]:
            return self._repeated(self._reference(f"(?P={group['reference']})"))
        if group and group["end"]:
            return self._flagged(group)
        head = group["plain"] if group else None
        self._push(head or "")
        if head:
            return f"(?{head}"
        self._captured += 1
        name = group and (group["java"] or group["python"])
        if name in self._names:
            raise PatternError("two groups have the name {}", "Name one of them otherwise", name)
        if name:
            self._names.add(name)
        return f"(?P<{name}>" if name else "("

    def _flagged(self, group: "re.Match[str]") -> str:
        """Read `(?i)`, which holds to the end of the group around it, or `(?i:`, a group."""
        on, off = frozenset(group["on"]), frozenset(group["off"] or "")
        if not on | off:
            raise PatternError("a group of flags has none", "Leave it out")
        if group["end"] == ":":
            self._push(":")
        self._flags = (self._flags | on) - off
        self._unicode_case = self._unicode_case or bool(on & {"u", "U"})
        return "(?:" if group["end"] == ":" else ""

    def _push(self, head: str) -> None:
        self._enter()
        self._open.append(_Group(head, self._flags, self._captured))

    def _end(self) -> str:
        if not self._open:
            raise PatternError("a ')' closes no group", r"Write '\)', or open a group")
        self._depth -= 1
        group = self._open.pop()
        self._flags = group.flags
        ended = self._repeated(")")
        if group.captured < self._captured and (ended != ")" or group.head not in ("", ":")):
            self._captures_vary = True
        return ended

    def _reference(self, reference: str) -> str:
        self._referenced = True
        return f"(?i:{reference})" if "i" in self._flags else f"(?:{reference})"

    @property
    def _looks_behind(self) -> bool:
        return any(group.head in ("<=", "<!") for group in self._open)

    # -- quantifiers -------------------------------------------------------------------------------

    def _repeated(self, atom: str) -> str:
        """Return the atom with the quantifier after it, if there is one."""
        quantifier = self._match(_QUANTIFIER) if self._more() else None
        if quantifier is None:
            return atom
        if self._looks_behind and (quantifier["comma"] or not quantifier["least"]):
            raise PatternError(
                "{} in a look-behind", "As in '(?<=a{2})', or leave it out", quantifier[0]
            )
        self._captures_vary = self._captures_vary or quantifier["kind"] == "+"
        return atom + (self._counted(quantifier) if quantifier["least"] else quantifier[0])

    def _counted(self, quantifier: "re.Match[str]") -> str:
        least, most = int(quantifier["least"]), int(quantifier["most"] or quantifier["least"])
        if most < least or most > _LONGEST_COUNT:
            raise PatternError("{} counts down, or too far", "As in '{1,3}'", quantifier[0])
        upper = str(min(most, _MOST_REPEATED)) if quantifier["most"] else ""
        counts = f"{min(least, _MOST_REPEATED)}{quantifier['comma'] or ''}{upper}"
        return f"{{{counts}}}{quantifier['kind']}"

    def _dangling(self) -> str:
        char = self._pattern[self._at - 1]
        up_to = ", and '{0,3}' for up to three" if char == "{" else ""
        instead = f"Write '\\{char}' for the character itself{up_to}"
        raise PatternError(f"'{char}' at index {self._at - 1} repeats nothing", instead)

    def _boundary(self, boundary: str) -> str:
        if boundary == r"\b" and self._peek() == "{":
            found = r"'\b{g}' is not known here"
            raise PatternError(found, "Leave it out: it is before each character of a name")
        return self._repeated(f"(?:{boundary})")

    # -- escapes -----------------------------------------------------------------------------------

    def _escape(self) -> str:
        char = self._peek()
        if char in _BOUNDARIES:
            self._at += 1
            return self._boundary(_BOUNDARIES[char])
        if char == "k":
            return self._repeated(self._named_reference())
        if char in tuple("123456789"):
            return self._repeated(self._numbered_reference())
        if char == "R" or (char == "X" and not self._looks_behind):
            # No name has a line break, and each character of ASCII is a cluster of its own.
            self._at += 1
            return self._repeated(as_class(TOPIC_CHARACTERS if char == "X" else NOTHING))
        escaped = self._escaped()
        atom = self._literal(escaped) if isinstance(escaped, str) else as_class(escaped)
        return self._repeated(atom)

    def _named_reference(self) -> str:
        name = self._match(_NAMED)
        if name is None:
            raise PatternError(r"'\k' names no group", r"As in '\k<name>'")
        return self._reference(f"(?P={name[1]})")

    def _numbered_reference(self) -> str:
        number = self._take()
        self._more()
        if self._peek() in tuple(digits) and int(number + self._peek()) <= self._captured:
            raise PatternError(f"'\\{number}{self._peek()}' is beyond nine", "Name the group")
        return self._reference(f"\\{number}")

    def _escaped(self) -> str | Characters:
        """Read what follows a backslash, in a class and elsewhere: a character, or a set."""
        number = self._match(NUMBERED)
        if number and "x" in self._flags:
            raise PatternError("an escape by number under (?x)", "Leave 'x' out")
        if number:
            return numbered(number)
        char = self._take()
        if char in ("p", "P"):
            return self._property(negated=char == "P")
        if char in CONTROLS:
            return CONTROLS[char]
        characters = of_shorthand(char)
        if characters is not None:
            return characters
        if char == "" or char in ascii_letters + digits:
            found_here = "{} is no escape here"
            raise PatternError(found_here, r"Write '\\' for a backslash itself", "\\" + char)
        return char

    def _property(self, *, negated: bool) -> Characters:
        match = self._match(_PROPERTY)
        name = (match[1] or match[2]) if match else self._peek()
        characters = of_property(name)
        if characters is None:
            instead = "Write its characters, as in '[a-z]'"
            raise PatternError("the property {} is not known here", instead, name)
        if "i" in self._flags and characters != either_case(characters):
            what = "Java's versions differ in the property {} under (?i)"
            raise PatternError(what, "Write '[a-zA-Z]'", name)
        return TOPIC_CHARACTERS - characters if negated else characters

    # -- classes -----------------------------------------------------------------------------------

    def _class(self) -> Characters:
        """Read a class from after its `[` to its `]`."""
        self._enter()
        negated = self._accept("^")
        characters = self._union(leftmost=True)
        while self._accept("&&"):
            characters &= self._union(leftmost=False)
        self._accept("]")
        self._depth -= 1
        return TOPIC_CHARACTERS - characters if negated else characters

    def _union(self, *, leftmost: bool) -> Characters:
        """Read the items between `[`, `&&` and `]`."""
        characters: Characters = NOTHING
        begin, nested = self._at, False
        while not self._ends_union(begin, leftmost=leftmost):
            if self._accept("["):
                nested = True
                characters |= self._class()
                continue
            if nested and not leftmost:
                found = "after '&&' more follows a class in the class"
                raise PatternError(found, "Put it into the class")
            characters |= self._item()
        if self._at == begin:
            raise PatternError("one side of '&&' is empty", "As in '[a-z&&[^b]]'")
        return characters

    def _ends_union(self, begin: int, *, leftmost: bool) -> bool:
        if self._at >= len(self._pattern):
            raise PatternError("a class is not closed", "End it with ']'")
        if self._pattern.startswith("&&", self._at):
            return True
        # The first ']' of a class is a character.
        return self._peek() == "]" and not (leftmost and self._at == begin)

    def _item(self) -> Characters:
        """Read a character, a range, or an escape."""
        if self._peek() == "^":
            raise PatternError("'^' within a class", r"Write '\^', or '&&[^...]' to leave out")
        if self._pattern.startswith("&&&", self._at - 2):
            raise PatternError("'&' after '&&'", r"Write '\&'")
        first = self._class_character()
        if not isinstance(first, str):
            return first
        if self._peek() != "-" or self._peek(1) in ("", "[", "]"):
            return self._single(first)
        self._at += 1
        last = self._class_character()
        if not isinstance(last, str) or last < first:
            raise PatternError("a range from {} ends before it", "As in '[a-z]'", first)
        within = frozenset(char for char in TOPIC_CHARACTERS if first <= char <= last)
        return either_case(within) if "i" in self._flags else within

    def _class_character(self) -> str | Characters:
        if "x" in self._flags and self._peek() in tuple("# \t\n\r\f\v"):
            raise PatternError("a space or '#' in a class under (?x)", "Leave it or 'x' out")
        if not self._accept("\\"):
            return self._take()
        if self._pattern.startswith("v-", self._at):
            raise PatternError(r"'\v-' in a class", r"Write '\v\-'")
        return self._escaped()


_READERS: dict[str, Callable[[_Translator], str]] = {
    "(": _Translator._begin,
    ")": _Translator._end,
    "[": lambda reader: reader._repeated(as_class(reader._class())),
    "\\": _Translator._escape,
    "|": lambda _: "|",
    ".": lambda reader: reader._repeated("."),
    "^": lambda reader: reader._boundary(r"\A"),
    "$": lambda reader: reader._boundary(r"\Z"),
} | dict.fromkeys("*+?{", _Translator._dangling)
