"""Random patterns and topic names; and `java.util.regex.Pattern`, in a JVM of its own."""

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

from tools.java_program import JavaProgram, RefusedError, run_java

NAMES = st.lists(st.text("aabbABk01._-", min_size=1, max_size=9), min_size=8, max_size=8)
"""Short names. Patterns that backtrack do so for each part of a name."""

# Parts of patterns in any order, so that most patterns are nonsense.
FRAGMENTS = st.lists(
    st.sampled_from([
        "a", "b", "B", "0", "1", ".", "-", "_", "|", "(", ")", "(?:", "(?=", "(?!", "(?>", "(?<=",
        "(?<!", "(?<n>", "(?i)", "(?-i)", "(?i:", "(?x)", "(?s)", "(?m:", "(?U)", "(?u)", "(?d)",
        "[", "]", "^", "$", "[^", "&&", "&", "*", "+", "?", "{2}", "{1,}", "{0,2}", "{", "}", "*?",
        "++", "?+", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\h", r"\H", r"\v", r"\V", r"\R",
        r"\X", r"\Q", r"\E", r"\b", r"\B", r"\A", r"\Z", r"\z", r"\G", r"\1", r"\2", r"\k<n>",
        r"\p{Lower}", r"\p{L}", r"\pL", r"\P{Punct}", r"\p{Alpha}", r"\p{IsDigit}", r"\p{gc=Pd}",
        r"\p{Lu}", r"\p{IsLatin}", r"\x61", r"\x{61}", r"\u0061", r"\061", r"\0141", r"\ca",
        r"\c!", r"\e", r"\.", r"\-", r"\\", r"\[", r"\]", r"\^", r"\&", r"\N", r"\y", r"\b{g}",
        " ", "#", "\n", "a-c", "A-Z", "0-9", "-", "\u017f", "\u212a", "é", "~", ":", "<", ">", "=",
        "!", ",", "%",
    ]),
    min_size=1,
    max_size=9,
).map("".join)  # fmt: skip

_CLASS_ITEMS = st.sampled_from([
    *"abAB01.-_ &~", "a-c", "A-C", "0-9", "--a", "!-~", "a-", "_-z", r"\d", r"\W", r"\w", r"\S",
    r"\p{Alpha}", r"\P{Lu}", r"\-", r"\.", r"\x61", r"\]", r"\Q]\E",
])  # fmt: skip


def _class_of(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    unions = st.lists(st.lists(items, min_size=1, max_size=3).map("".join), min_size=1, max_size=3)
    return st.builds("[{}{}]".format, st.sampled_from(["", "^"]), unions.map("&&".join))


CLASSES = st.recursive(_CLASS_ITEMS, _class_of, max_leaves=6).filter(lambda text: text[0] == "[")

_ATOMS = st.sampled_from([
    "a", "b", "A", "0", ".", r"\.", "-", "_", r"\d", r"\w", r"\W", r"\S", r"\h", r"\p{Alpha}",
    r"\p{Lu}", r"\P{Digit}", r"\x61", r"\R", r"\X", r"\Qa.\E", "^", "$", r"\b", r"\B", r"\A",
    r"\z", r"\Z", r"\G", r"\1", r"\2", "(?i)", "(?-i)",
])  # fmt: skip
_QUANTIFIERS = st.sampled_from([
    "", "", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?", "??", "*+", "++", "?+",
    "{1,2}+", "{1,2}?",
])  # fmt: skip
_GROUPS = st.sampled_from(["(", "(", "(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?<n>"])


def _sequences(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sequence = st.lists(st.builds("{}{}".format, atoms, _QUANTIFIERS), max_size=4).map("".join)
    return st.lists(sequence, min_size=1, max_size=3).map("|".join)


EXPRESSIONS = _sequences(
    st.recursive(
        _ATOMS | CLASSES,
        lambda atoms: st.builds("{}{})".format, _GROUPS, _sequences(atoms)),
        max_leaves=12,
    )
)


PLAIN = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "^"]),
    st.lists(
        st.builds(
            "{}{}".format,
            st.sampled_from([
                "a", "b", "A", "0", ".", r"\.", "-", "_", "[a-c]", "[^b]", "(a|b)", "(?:ab|-)",
                r"\d", r"\w", "(?=a)", "[a-zA-Z0-9._-]", "|",
            ]),
            st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "+?"]),
        ).map(lambda text: text[:1] if text[0] == "|" else text),
        max_size=5,
    ).map("".join),
    st.sampled_from(["", "$"]),
)  # fmt: skip
"""Everyday patterns with the same meaning in Python's `re`."""


class JavaPatterns:
    """Access to `java.util.regex.Pattern` in the Java program."""

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def found(self, pattern: str, names: Sequence[str]) -> list[bool] | None:
        """Return for each name whether Java finds the pattern; None if Java refuses the pattern."""
        encoded = base64.b64encode(pattern.encode()).decode()
        try:
            answer = self._program.ask(" ".join([encoded, *names]))
        except RefusedError:
            return None
        return [each == "1" for each in answer]


@contextmanager
def run_java_patterns() -> Iterator[JavaPatterns]:
    """Run the Java program. It needs no jars."""
    with run_java(Path(__file__).with_name("JavaPatterns.java"), []) as program:
        yield JavaPatterns(program)
