"""The address of the repository, as a maintainer sets it in pyproject.toml."""

import re

REPOSITORY = "https://host/owner/name"


def set_repository(project: str) -> str:
    """Return the text of pyproject.toml with an address."""
    return re.sub(r"^(# )?(Repository =).*", rf'\2 "{REPOSITORY}"', project, flags=re.MULTILINE)
