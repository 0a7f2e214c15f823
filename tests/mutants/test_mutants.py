"""Planted faults, the tests chosen for them, and the report of surviving faults."""

import re
from pathlib import Path

import pytest

from tools.mutants.__main__ import drawn, main, modules
from tools.mutants.equivalent import EQUIVALENT
from tools.mutants.faults import faults
from tools.mutants.run import PACKAGE, matching

ROOT = Path(__file__).parents[2]
LIMITS = '''"""Limits."""

MOST = 10


def limited(number: int) -> int:
    return min(number, MOST)
'''


def after(text: str) -> set[str]:
    return {fault.after.strip() for fault in faults("m.py", text)}


@pytest.mark.parametrize(
    ("text", "planted"),
    [
        ("a < b", {"a <= b", "a >= b"}),
        ("a is None", {"a is not None"}),
        ("a and b", {"a or b", "(a)", "(b)"}),
        ("not a", {"(a)"}),
        ("a = 3", {"a = 4", "a = 2"}),
        ("f(x=True)", {"f(x=False)", "pass"}),
        ("a = b * c", {"a = (b // c)"}),
        ("a = min(b, c)", {"a = (b)", "a = (c)"}),
        ("a = b if c else d", {"a = (d if c else b)"}),
        ("def f():\n    return x", {"def f():\n    return None"}),
        ("a.b = c", {"pass"}),
        ("raise e", {"pass"}),
        ("logger.info(1)", {"logger.info(2)", "logger.info(0)"}),
        ('"""Text."""', set()),
        ("a: Literal[1] = b", set()),
        ('f"{a + 1}"', set()),
        ("if TYPE_CHECKING:\n    a = 1", set()),
        ("'é', a < b", {"'é', a <= b", "'é', a >= b"}),
    ],
)
def test_each_kind_of_fault(text: str, planted: set[str]) -> None:
    assert after(text) == planted


def test_a_fault_leaves_a_module_that_is_read_and_differs_in_one_place() -> None:
    for fault in drawn(ROOT, modules(ROOT, [PACKAGE]), 200, 0):
        compile(fault.after, fault.path, "exec")
        signs = "".join(line[0] for line in fault.diff.splitlines())
        assert re.fullmatch(r"-+\++", signs), fault.diff


def test_a_draw_is_the_same_for_the_same_seed() -> None:
    paths = modules(ROOT, [f"{PACKAGE}/net"])
    assert drawn(ROOT, paths, 20, 1) == drawn(ROOT, paths, 20, 1) != drawn(ROOT, paths, 20, 2)
    every = drawn(ROOT, [f"{PACKAGE}/net/deadline.py"], 10_000, 0)
    assert len({fault.after for fault in every}) == len(every) < 100


def test_a_fault_that_is_none_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "limits.py").write_text(LIMITS)
    every = drawn(tmp_path, ["limits.py"], 10, 0)
    known = ("limits.py", "return min(number, MOST)", "return (number)")
    monkeypatch.setitem(EQUIVALENT, known, "nobody gives more")
    left = drawn(tmp_path, ["limits.py"], 10, 0)
    assert len(left) == len(every) - 1
    assert known[2] not in "".join(fault.after for fault in left)


def test_the_tests_that_name_a_module_come_before_the_others_of_its_package() -> None:
    near, rest = matching(ROOT, f"{PACKAGE}/net/sasl/jaas.py")
    assert "tests/net/sasl/test_jaas.py" in near
    assert "tests/net/sasl/test_scram.py" in rest
    (tests, others) = matching(ROOT, f"{PACKAGE}/secret.py")
    assert "tests/test_secret.py" in tests
    assert all(Path(each).parent == Path("tests") for each in [*tests, *others])


@pytest.mark.long
def test_what_no_test_sees_is_listed_and_the_tree_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, text in {
        f"{PACKAGE}/__init__.py": "",
        f"{PACKAGE}/net/__init__.py": "",
        f"{PACKAGE}/net/limits.py": LIMITS,
        "tests/net/test_limits.py": f"from {PACKAGE}.net.limits import limited\n"
        "def test_what_is_less():\n    assert limited(9) == 9\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    main(["--count", "2", "--seed", "2", f"{PACKAGE}/net/limits.py"], tmp_path)
    said = capsys.readouterr().out
    where = f"{PACKAGE}/net/limits.py:7 bound"
    assert said == (
        f"1/2 survived: {where}\n-    return min(number, MOST)\n+    return (number)\n"
        f"2/2 caught: {where}\n1 of 2 survived\n"
    )
    assert (tmp_path / PACKAGE / "net/limits.py").read_text() == LIMITS


def test_tests_that_fail_without_a_fault_are_told_of(tmp_path: Path) -> None:
    for path, text in {
        f"{PACKAGE}/net/limits.py": LIMITS,
        "tests/net/test_limits.py": "def test_that_fails():\n    assert False\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    with pytest.raises(RuntimeError, match=r"without a fault these fail: tests/net/test_limits.py"):
        main([f"{PACKAGE}/net"], tmp_path)
