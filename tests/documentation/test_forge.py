"""The files by which a forge, git's hooks and editors run the project: they run what there is."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.documentation.pages import PROJECT

RUN = PROJECT / ".ci" / "run"
WORKFLOW = PROJECT / ".github" / "workflows" / "ci.yml"
CONTAINER = PROJECT / ".devcontainer"
HOOKS = PROJECT / ".pre-commit-config.yaml"
FORMS = sorted((PROJECT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))

without_ci = pytest.mark.skipif(not RUN.exists(), reason="the source archive has no .ci")


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def _suite() -> Any:
    return _read(WORKFLOW)["jobs"]["suite"]


def _steps(name: str) -> Iterator[Any]:
    """Yield the steps of the workflow that have a field of this name."""
    return (step for step in _suite()["steps"] if name in step)


def _input(action: str, name: str) -> Any:
    (step,) = (step for step in _steps("uses") if step["uses"].startswith(f"{action}@"))
    return step["with"][name]


def _targets(commands: str) -> set[str]:
    """Return the targets that `make` is given, without options and without variables."""
    words = (line.split() for line in re.findall(r"\bmake ([^\n|&;#]*)", commands))
    return {word for line in words for word in line if "=" not in word and "$" not in word}


def _has_target(name: str) -> bool:
    text = (PROJECT / "Makefile").read_text()
    return bool(re.search(rf"^{re.escape(name)}:", text, re.MULTILINE))


def _dev_tools() -> set[str]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    return {re.split(r"[^\w-]", need)[0] for need in project["optional-dependencies"]["dev"]}


@without_ci
def test_the_workflow_runs_a_file_of_the_project() -> None:
    (step,) = _steps("run")
    assert step["run"].split()[-1] == str(RUN.relative_to(PROJECT))
    assert os.access(RUN, os.X_OK)


@without_ci
def test_ci_knows_what_the_workflow_gives_it() -> None:
    (step,) = _steps("run")
    text = RUN.read_text()
    assert set(step["env"]) == set(re.findall(r"\$\{([A-Z]+)[:}]", text))
    taken = re.search(r"case \$turn in ([\w |]+)\)", text)
    assert taken is not None
    assert _suite()["strategy"]["matrix"]["turn"] == taken[1].split(" | ")


@without_ci
def test_ci_makes_what_the_makefile_has() -> None:
    targets = _targets(RUN.read_text())
    assert "test-long" in targets
    assert [target for target in targets if not _has_target(target)] == []


def test_the_workflow_has_the_oldest_python_as_python3_and_the_newest() -> None:
    versions = str(_input("actions/setup-python", "python-version")).split()
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert f">={versions[-1]}" == project["requires-python"]
    (step,) = _steps("run")
    assert step["env"]["NEWEST"] == f"python{versions[0]}"


def test_the_container_has_the_python_and_the_java_of_the_workflow() -> None:
    text = (CONTAINER / "Dockerfile").read_text()
    version = str(_input("actions/setup-python", "python-version")).split()[-1]
    assert f"FROM python:{version}-" in text
    assert f"openjdk-{_input('actions/setup-java', 'java-version')}-jdk" in text


def test_the_container_makes_the_environment() -> None:
    container = json.loads((CONTAINER / "devcontainer.json").read_text())
    assert (CONTAINER / container["build"]["dockerfile"]).exists()
    (target,) = _targets(container["postCreateCommand"])
    assert _has_target(target)


def test_each_hook_runs_a_tool_of_the_environment() -> None:
    hooks = [hook for group in _read(HOOKS)["repos"] for hook in group["hooks"]]
    assert {group["repo"] for group in _read(HOOKS)["repos"]} == {"local"}
    tools = {hook["entry"].split()[0] for hook in hooks}
    assert tools == {f".venv/bin/{tool}" for tool in _dev_tools()}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_each_form_asks_for_something(path: Path) -> None:
    form = _read(path)
    if path.stem == "config":
        return
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in fields)
    ids = [field["id"] for field in fields]
    assert len(set(ids)) == len(ids)


def test_these_files_name_no_host() -> None:
    """Not even that of a registry: who has a mirror sets it outside of the project."""
    files = [WORKFLOW, HOOKS, *FORMS, *CONTAINER.iterdir()]
    assert [path.name for path in files if "://" in path.read_text()] == []
