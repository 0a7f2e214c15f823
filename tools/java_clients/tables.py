"""The tables of a page: a Kafka Java client and our client."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tools.java_clients.rows import JavaClient, Setting, Verdict

_OPTION = re.compile(r"'kafka\.([a-z0-9.]+)'")


def render(client: JavaClient) -> str:
    """Return Markdown: counts, and folded tables of methods and of settings."""
    of_methods = [row.verdict for of_class in client.methods.values() for row in of_class.values()]
    of_settings = [row.verdict for row in client.settings.values()]
    return "\n".join(
        [
            f"{len(of_methods)} methods: {_counted(of_methods)}. "
            f"{len(of_settings)} settings: {_counted(of_settings)}.",
            "",
            *_folded("Every method", _method_rows(client)),
            "",
            *_folded("Every setting", _setting_rows(client.settings)),
        ]
    )


def _counted(verdicts: list[Verdict]) -> str:
    return ", ".join(f"{verdicts.count(each)} {each}" for each in Verdict)


def _folded(summary: str, rows: Iterable[str]) -> list[str]:
    return ["<details>", f"<summary>{summary}</summary>", "", *rows, "", "</details>"]


def _method_rows(client: JavaClient) -> Iterator[str]:
    yield "| Java's | ours | |"
    yield "|---|---|---|"
    for class_name, of_class in client.methods.items():
        is_main = class_name == client.main_class
        begin = "" if is_main else f"`{class_name}`: "
        left_out: dict[str, list[str]] = defaultdict(list)
        plain: dict[str, str] = {}
        for java, row in of_class.items():
            if row.verdict is Verdict.LEFT_OUT:
                left_out[row.why].append(java)
            elif row.verdict is Verdict.HERE and not row.why and not is_main:
                plain[java] = row.ours
            else:
                yield _row(begin, [java], [row.ours], row.verdict, row.why)
        if plain:
            yield _row(begin, list(plain), list(plain.values()), Verdict.HERE)
        for why, names in left_out.items():
            yield _row(begin, names, [], Verdict.LEFT_OUT, why)


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


def _row(begin: str, java: list[str], ours: list[str], verdict: Verdict, why: str = "") -> str:
    return f"| {begin}{_code(java)} | {_code(ours)} | {verdict}{why and ': ' + why} |"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in dict.fromkeys(names))
