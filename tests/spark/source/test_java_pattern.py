r"""Patterns of `format("kafka")`. They match the same names as in Java, or are refused."""

import os
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.source.java_pattern import PatternError, compiled
from spark_kafka_source.spark.source.subscription import SubscribePattern
from tests.spark.source.java_patterns import (
    CLASSES,
    EXPRESSIONS,
    FRAGMENTS,
    NAMES,
    PLAIN,
    JavaPatterns,
    run_java_patterns,
)

EXAMPLES = int(os.environ.get("PATTERN_EXAMPLES", "300"))
"""Number of examples in each test against Java. 20,000 examples take some minutes."""

# A pattern, names in which it is found, and names in which it is not.
FOUND = [
    ("b", "b abc", "a B"),
    ("^b$", "b", "abc"),
    ("events-.*", "events- my-events-1", "events"),
    (r"^events\.[a-z]{2}$", "events.de", "events.d eventsxde"),
    (r"^\p{Alpha}+$", "events Events", "events1 a-b"),
    (r"^\p{Digit}\p{Lower}\p{Upper}\p{Punct}\p{XDigit}$", "0aA.f 0aA-F", "0aA.g aaA.f"),
    (r"^\p{L}\pN\p{Lu}\P{Lu}\p{gc=Pd}\p{IsAlphabetic}$", "a1Bb-c", "a1BB-c a1Bb_c"),
    (r"^a\h*\z", "a", "ab"),
    (r"^a\Z", "a", "ab"),
    ("^[a-z&&[^b]]+$", "ac", "abc"),
    ("^[a[01]-]+$", "a0-1", "b"),
    ("^[^a[01]]+$", "b2", "a 0"),
    ("^[a-z&&[aeiou]&&[^e]]$", "a o", "e b"),
    (r"^\Qa.b\E$", "a.b", "axb"),
    (r"^\Qa.b", "a.b", "axb"),
    (r"^[\Qa-c\E]+$", "a-c", "b"),
    (r"^\Qab\E+$", "ab abb", "abab"),
    ("^a*+a", "", "a aa"),
    ("^(?>a|ab)c", "ac", "abc"),
    ("^a(?i)b$", "ab aB", "Ab"),
    ("^a(?i:b)c$", "aBc", "aBC"),
    ("^(?i)a(?-i)b$", "Ab", "AB"),
    ("^(?i)[a-c]+_[^x]$", "aBC_Y", "a_X"),
    ("^(a(?i)b|c)d$", "aBd Cd", "aBD"),
    ("(?<year>20[0-9]{2})-\\k<year>", "2026-2026", "2026-2025"),
    ("(?P<year>20[0-9]{2})-(?P=year)", "2026-2026", "2026-2025"),
    (r"^(a)\1$", "aa", "a"),
    (r"^(a)\10$", "aa0", "aaa"),
    (r"^\x61\x{62}\u0063\0144\0145$", "abcde", "x"),
    (r"^(\x{10ffff}|\x{1f600}|\x{00000061})$", "a", "b"),
    (r"^\c!$", "a", "A"),
    (r"^\d\w\S$", "0_-", "a__"),
    (r"a\sb|a\Rb|a\vb", "", "ab a-b"),
    (r"^\X\X$", "a-", "a"),
    (r"\bb\B", "a-bc", "ab b"),
    (r"^\Ga", "ab", "ba"),
    ("(?<=a{2})b(?!c)", "aab", "ab aabc"),
    ("(?x) a b # c", "ab", "a"),
    ("[]a]", "a", "b"),
    (r"^[\w-.]+$", "a-b.c", ""),
    ("^a{2}$|^b{1,2}$|^c{0,1}+$", "aa b bb c", "a bbb cc"),
    ("^(?:a?){1000000000}$", "a aaa", "ab"),
    ("^.{249}$", "x" * 249, "x" * 248),
    ("a{300}", "", "a" * 249),
    ("%|é|\\n| ", "", "a"),
    ("(?iu)K", "k", "a"),
    ("", "a", ""),
    ("(?:)", "a", ""),
]

# A pattern, and what its error says.
REFUSED = [
    (r"\p{IsGreek}", "the property 'IsGreek' is not known here. Write its characters"),
    (r"\p", "the property ''"),
    (r"(?i)\p{Lower}", "'Lower' under (?i). Write '[a-zA-Z]'"),
    ("[a-z&&^b]", "'^' within a class. Write '\\^', or '&&[^...]'"),
    ("[a-z&&[ab]c]", "after '&&' more follows a class in the class"),
    ("[a&&&b]", "'&' after '&&'"),
    ("[a&&]", "one side of '&&' is empty"),
    ("[z-a]", "a range from 'z' ends before it"),
    (r"[a-\d]", "a range from 'a'"),
    ("[a", "a class is not closed"),
    ("[[a]", "a class is not closed"),
    (r"[\v-z]", "'\\v-' in a class"),
    (r"(?x)[a b]", "a space or '#' in a class under (?x)"),
    (r"(?x)\061", "an escape by number under (?x)"),
    ("a{,3}", "'{' at index 1 repeats nothing. Write '\\{' for the character itself, and '{0,3}'"),
    ("a**", "'*' at index 2 repeats nothing. Write '\\*'"),
    ("{1}", "'{' at index 0 repeats nothing"),
    ("a{3,2}", "'{3,2}' counts down, or too far"),
    ("a{9999999999}", "'{9999999999}' counts down, or too far"),
    ("(", "a group is not closed"),
    (")", "a ')' closes no group"),
    ("(?#a)", "'(?#a' begins no group of Java's"),
    ("(?P<1>a)", "begins no group of Java's"),
    ("(?d)a", "begins no group of Java's"),
    ("(?)", "a group of flags has none"),
    ("(?iu)\u212a", "may be a letter of ASCII by (?iu). Leave 'u'"),
    (r"\y", "is no escape here"),
    ("a\\", "is no escape here"),
    (r"a\E", "is no escape here"),
    (r"\N{DIGIT ONE}", "is no escape here"),
    (r"\b{g}", "'\\b{g}' is not known here"),
    (r"\x{110000}", "is no escape here"),
    (r"\k", "'\\k' names no group"),
    (r"\1", "invalid group reference 1"),
    (r"\k<n>", "unknown group name 'n'"),
    ("(?<n>a)(?<n>b)", "two groups have the name 'n'"),
    ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\\10", "is beyond nine. Name the group"),
    (r"(a)*\1", "a back reference may mean something else"),
    (r"(?=(a))\1", "a back reference may mean something else"),
    (r"(a)b*+\1", "a back reference may mean something else"),
    ("(?<=a+)b", "'+' in a look-behind"),
    ("(?<=a|bc)d", "look-behind requires fixed-width"),
    (r"(?<=\X)", "is no escape here"),
    ("(" * 51 + ")" * 51, "nested more than 50 deep"),
    ("[" * 51 + "a" + "]" * 51, "nested more than 50 deep"),
]


@pytest.mark.parametrize(("pattern", "names", "others"), FOUND, ids=lambda text: text[:40])
def test_in_which_names_a_pattern_is_found(pattern: str, names: str, others: str) -> None:
    expression = compiled(pattern)
    assert [each for each in names.split() if not expression.search(each)] == []
    assert [each for each in others.split() if expression.search(each)] == []


@pytest.mark.parametrize(("pattern", "said"), REFUSED, ids=lambda text: text[:40])
def test_what_is_refused_is_named(pattern: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        SubscribePattern.parse(pattern)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    "pattern",
    [
        "\\w", "(?i)a", "[a-z&&[^b]]", "(", "(a|", "[", "[a", "\\", "\\Q.", "a|", "\\p{L}", "(?<n",
        "{", "\\x{0", "&&", "(?i)", "a{2", "\\c",
    ],
)  # fmt: skip
def test_a_long_pattern_takes_no_time_and_no_recursion(pattern: str) -> None:
    began = time.process_time()
    for text in (pattern * (10_000 // len(pattern)), pattern * (10_000 // len(pattern)) + ")]"):
        try:
            found = compiled(text).pattern
        except PatternError:
            continue
        assert len(found) <= 20 * len(text)
    assert time.process_time() - began < 30


# -- against Java ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def java() -> Iterator[JavaPatterns]:
    with run_java_patterns() as java:
        yield java


def same_or_refused(java: JavaPatterns, pattern: str, names: list[str]) -> bool:
    """Compare the translation with Java. Return False if there is no translation."""
    try:
        expression = compiled(pattern)
    except PatternError:
        return False
    assert [bool(expression.search(each)) for each in names] == java.found(pattern, names)
    return True


@pytest.mark.java
@pytest.mark.parametrize("pattern", [each[0] for each in FOUND if "(?P" not in each[0]])
@settings(max_examples=20)
@given(names=NAMES)
def test_java_finds_each_of_the_above(java: JavaPatterns, pattern: str, names: list[str]) -> None:
    assert same_or_refused(java, pattern, [*names, "a", "ab", "aB", "a1Bb-c", "2026-2026"])


@pytest.mark.java
@pytest.mark.parametrize(
    ("patterns", "least"), [(EXPRESSIONS, 0.3), (CLASSES, 0.3), (FRAGMENTS, 0.1)],
    ids=["expressions", "classes", "fragments"],
)  # fmt: skip
def test_java_finds_the_same_or_it_is_refused(
    java: JavaPatterns, patterns: st.SearchStrategy[str], least: float
) -> None:
    taken = []

    @settings(max_examples=EXAMPLES)
    @given(patterns, NAMES)
    def hold(pattern: str, names: list[str]) -> None:
        taken.append(same_or_refused(java, pattern, names))

    hold()
    assert sum(taken) > least * len(taken), "else nothing much was compared"


@pytest.mark.java
@settings(max_examples=EXAMPLES)
@given(PLAIN, NAMES)
def test_what_java_and_python_spell_alike_is_found_as_before(
    java: JavaPatterns, pattern: str, names: list[str]
) -> None:
    assert same_or_refused(java, pattern, names)
    before = re.compile(pattern)
    assert [bool(before.search(each)) for each in names] == java.found(pattern, names)
