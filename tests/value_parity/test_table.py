"""The page of the odd cases has all cases, with the present answers of both sides."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tools.value_parity.answers import NOTHING, ours
from tools.value_parity.case import Case, Shown
from tools.value_parity.table import MARKS, PAGE, TITLES, rendered, row

CASES = [each for cases in TITLES.values() for each in cases]
PROJECT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.spark
def test_the_page_has_what_spark_answers(spark: SparkSession) -> None:
    assert MARKS.split(PAGE)[1] == rendered(spark), "run `make value-parity`"


def test_the_page_has_what_we_answer() -> None:
    """The test does not run Spark. It takes Spark's answers from the page."""
    lines = [each for each in MARKS.split(PAGE)[1].splitlines() if re.match(r"\| \d", each)]
    for case, line in zip(CASES, lines, strict=True):
        cells = re.split(r"(?<!\\) \| ", line.removeprefix("| ").removesuffix(" |"))
        beside = cells[3].replace("\\|", "|")
        assert cells == row(case, beside, ours(case))


def test_all_cases_are_there_in_their_order() -> None:
    numbers = [each.number for each in CASES]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, 45))


@pytest.mark.parametrize("case", [each for each in CASES if isinstance(each.asked, Shown)])
def test_what_no_function_answers_is_held_by_a_test(case: Case) -> None:
    assert isinstance(case.asked, Shown)
    path, _, name = case.asked.test.partition("::")
    assert f"def {name}(" in (PROJECT / path).read_text()


@pytest.mark.parametrize("case", CASES, ids=lambda each: f"{each.number}-{each.what}")
def test_a_verdict_says_how_or_why(case: Case) -> None:
    assert re.fullmatch("same|(better|different): .+", case.verdict)


def test_a_verdict_that_the_answers_belie_is_refused() -> None:
    case = CASES[0]
    with pytest.raises(ValueError, match="bytes behind the record"):
        row(case, "bad", "bad")
    assert row(case, NOTHING, "bad")[3] == NOTHING
