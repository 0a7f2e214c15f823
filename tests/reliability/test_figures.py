"""The table of figures. The tests that it names outside this package must exist."""

import importlib
from dataclasses import replace

import pytest

from tests.reliability.figures import PROMISES, SHOWN_ELSEWHERE, Figure, render

FIGURE = Figure("10", "grown twice", "rows missed: 0", "tests/a.py::test_b")


@pytest.mark.parametrize("figure", SHOWN_ELSEWHERE, ids=lambda figure: figure.test)
def test_what_the_table_names_elsewhere_is_there(figure: Figure) -> None:
    path, _, name = figure.test.partition("::")
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    assert callable(getattr(module, name))


def test_figures_come_in_the_order_of_the_promises_and_say_the_seed() -> None:
    lines = render([FIGURE, replace(FIGURE, promise="2"), FIGURE], seed=7).splitlines()
    assert lines[0] == "Seed 7."
    numbers = [line.split(" | ")[0].strip("| ") for line in lines[4:]]
    assert numbers == ["2", *["4"] * 2, *["9"] * 4, "10", "10", "24"]
    assert lines[-2] == (
        f"| 10 | {PROMISES['10']} | grown twice | rows missed: 0 | `tests/a.py::test_b` |"
    )
