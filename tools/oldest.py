"""Print the oldest allowed version of each run-time dependency, as constraints for pip.

    python -m tools.oldest > constraints.txt

The dependencies of the extras `fast` and `json` are among them.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_REQUIREMENT = re.compile(r"(?P<name>[\w-]+)>=(?P<version>[\d.]+)")


def oldest() -> Iterator[str]:
    """Yield a constraint for each dependency: the first release line that pyproject.toml allows."""
    project = tomllib.loads(_PROJECT.read_text())["project"]
    extras = project["optional-dependencies"]
    for each in [*project["dependencies"], *extras["fast"], *extras["json"]]:
        found = _REQUIREMENT.fullmatch(each)
        if found is None:
            raise ValueError(f"{each!r} is not of the form 'name>=version'")
        yield f"{found['name']}=={found['version']}.*"


if __name__ == "__main__":
    sys.stdout.writelines(f"{each}\n" for each in oldest())
