"""Tables of docs/contributors/measured/typed-values-parity.md."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from spark_kafka_source.secret import printable
from tools.marks import Marks
from tools.value_parity.answers import ERROR, NOTHING, REFUSED, Spark, of_upb, ours
from tools.value_parity.avro_cases import AVRO
from tools.value_parity.case import Case, Json, Protobuf, Shown
from tools.value_parity.json_cases import JSON
from tools.value_parity.protobuf_cases import PROTOBUF

PAGE = Path(__file__).parents[2] / "docs" / "contributors" / "measured" / "typed-values-parity.md"
MARKS = Marks("<!-- cases: written by make value-parity -->", "<!-- end of cases -->")
TITLES = {
    "Avro, beside `from_avro`": AVRO,
    "JSON, beside `from_json`": JSON,
    "Protobuf, beside upb": PROTOBUF,
}

_MOST_SHOWN = 24


def rendered(spark: SparkSession) -> str:
    """Return all tables, with new answers."""
    functions = Spark(spark)
    found = [f"{_counted([each for cases in TITLES.values() for each in cases])}\n"]
    for title, cases in TITLES.items():
        beside = _of_upb(cases) if cases is PROTOBUF else functions.answers(cases)
        rows = (row(each, answer, ours(each)) for each, answer in zip(cases, beside, strict=True))
        found.append(f"## {title}\n\n{_table(title, rows)}\n")
    return "\n".join(found).rstrip()


def row(case: Case, beside: str, here: str) -> list[str]:
    """Return a row of a table. Raise `ValueError` if the answers contradict the verdict."""
    if beside != NOTHING and not _may_be(case, beside, here):
        raise ValueError(f"{case.number}, {case.what}: {beside!r}, {here!r}: {case.verdict!r}?")
    cells = [str(case.number), case.what, _input(case), beside, here, case.verdict]
    return [each.replace("|", "\\|") for each in cells]


def _may_be(case: Case, beside: str, here: str) -> bool:
    """Return whether the verdict fits the answers.

    If both sides refuse the input, any verdict fits. Equal answers for Protobuf also fit any
    verdict, since upb's answer is not the whole result of Spark.
    """
    is_same = case.verdict == "same"
    if beside in (REFUSED, ERROR):
        return here.startswith(("refused", "bad")) or not is_same
    return is_same is (beside == here) or (isinstance(case.asked, Protobuf) and beside == here)


def _of_upb(cases: Sequence[Case]) -> list[str]:
    return [of_upb(each.asked) if isinstance(each.asked, Protobuf) else NOTHING for each in cases]


def _counted(cases: Sequence[Case]) -> str:
    words = [each.verdict.partition(":")[0] for each in cases]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("same", "better", "different"))
    return f"{len(cases)} inputs of {len({each.number for each in cases})} cases: {counts}."


def _table(title: str, rows: Iterable[list[str]]) -> str:
    beside = title.rpartition(" ")[2]
    head = ["#", "case", "input", beside, "here", "verdict"]
    return "\n".join(f"| {' | '.join(each)} |" for each in [head, ["---"] * len(head), *rows])


def _input(case: Case) -> str:
    asked = case.asked
    if isinstance(asked, Shown):
        return f"held by `{asked.test.rpartition('::')[2]}`"
    data = asked.text if isinstance(asked, Json) else asked.data
    if data is None:
        return "null"
    if not data:
        return "nothing"
    if isinstance(asked, Json):
        return f"`{printable(data.decode(errors='backslashreplace'))}`"
    more = " …" if len(data) > _MOST_SHOWN else ""
    return f"`{data[:_MOST_SHOWN].hex(' ')}{more}`"
