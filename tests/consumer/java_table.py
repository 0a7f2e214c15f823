"""`python -m tests.consumer.java_table`: the README's tables of Kafka's Java consumer and ours."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.consumer.java_consumer import CONFIGURATION, METHODS, Method, Setting, Verdict
from tests.marks import Marks

README = Path(__file__).parents[2] / "README.md"
MARKS = Marks("<!-- consumer: written by make java-consumer -->", "<!-- end of consumer -->")

_OPTION = re.compile(r"'kafka\.([a-z0-9.]+)'")


def render(
    methods: Mapping[str, Mapping[str, Method]] = METHODS,
    configuration: Mapping[str, Setting] = CONFIGURATION,
) -> str:
    """Markdown: the counts, and folded away a table of methods and one of configuration."""
    of_methods = [row.verdict for of_class in methods.values() for row in of_class.values()]
    of_settings = [row.verdict for row in configuration.values()]
    return "\n".join(
        [
            f"{len(of_methods)} methods: {_counted(of_methods)}. "
            f"{len(of_settings)} settings: {_counted(of_settings)}.",
            "",
            *_folded("Every method", _method_rows(methods)),
            "",
            *_folded("Every setting", _setting_rows(configuration)),
        ]
    )


def _counted(verdicts: list[Verdict]) -> str:
    return ", ".join(f"{verdicts.count(each)} {each}" for each in Verdict)


def _folded(summary: str, rows: Iterable[str]) -> list[str]:
    return ["<details>", f"<summary>{summary}</summary>", "", *rows, "", "</details>"]


def _method_rows(methods: Mapping[str, Mapping[str, Method]]) -> Iterator[str]:
    yield "| Java's | ours | |"
    yield "|---|---|---|"
    for class_name, of_class in methods.items():
        left_out: dict[str, list[str]] = defaultdict(list)
        plain: dict[str, str] = {}
        for java, row in of_class.items():
            if row.verdict is Verdict.LEFT_OUT:
                left_out[row.why].append(java)
            elif row.verdict is Verdict.HERE and not row.why and class_name != "Consumer":
                plain[java] = row.ours
            else:
                yield _row(class_name, [java], [row.ours], row.verdict, row.why)
        if plain:
            yield _row(class_name, list(plain), list(plain.values()), Verdict.HERE)
        for why, names in left_out.items():
            yield _row(class_name, names, [], Verdict.LEFT_OUT, why)


def _setting_rows(configuration: Mapping[str, Setting]) -> Iterator[str]:
    yield "| settings | |"
    yield "|---|---|"
    for verdict in Verdict:
        by_reason: dict[str, list[str]] = defaultdict(list)
        for name, row in sorted(configuration.items()):
            if row.verdict is verdict:
                by_reason[row.why].append(name)
        for why, names in by_reason.items():
            reason = _OPTION.sub(r"`\1`", why)
            yield f"| {_code(names)} | {verdict}{reason and ': ' + reason} |"


def _row(class_name: str, java: list[str], ours: list[str], verdict: Verdict, why: str = "") -> str:
    of_class = "" if class_name == "Consumer" else f"`{class_name}`: "
    return f"| {of_class}{_code(java)} | {_code(ours)} | {verdict}{why and ': ' + why} |"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in dict.fromkeys(names))


if __name__ == "__main__":
    MARKS.write(README, render())
