"""The tables of checks on the pages: each check that the doctor's code names is in them."""

import ast
import re
from pathlib import Path

import pytest

import spark_kafka_source.doctor
from tests.documentation.pages import DOCS

CODE = Path(spark_kafka_source.doctor.__file__).parent
MAKERS = {"ok", "wrong", "unknown", "failed"}
"""The functions that make a finding. Their first argument is the name of its check."""


def checks() -> set[str]:
    return {
        call.args[0].value
        for module in CODE.glob("*.py")
        for call in ast.walk(ast.parse(module.read_text()))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in MAKERS
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


@pytest.mark.parametrize("page", ["troubleshooting.md", "contributors/doctor.md"])
def test_a_page_has_each_check(page: str) -> None:
    _, _, table = (DOCS / page).read_text().partition("| check |")
    rows = table.partition("\n\n")[0].splitlines()
    shown = {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    missing = {
        name for name in checks() if name not in shown and f"… {name.split()[-1]}" not in shown
    }
    assert missing == set()
    assert {"connect", "tls", "leaders", "spark"} <= checks()
