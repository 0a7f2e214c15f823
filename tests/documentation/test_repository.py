"""The site with and without an address of the repository in pyproject.toml."""

from pathlib import Path

import pytest
from mkdocs.config.defaults import MkDocsConfig

from spark_kafka_source import __version__
from tests.documentation import site
from tests.documentation.pages import PROJECT
from tests.documentation.repository import REPOSITORY, set_repository

TEXT = "[Speed](contributors/measured/speed.md#reading), [licence](../LICENSE), [own](groups.md)"


@pytest.fixture(params=[None, REPOSITORY], ids=["none", "one"])
def address(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str | None:
    text = (PROJECT / "pyproject.toml").read_text()
    (tmp_path / "pyproject.toml").write_text(set_repository(text) if request.param else text)
    monkeypatch.setattr(site, "PROJECT", tmp_path)
    found: str | None = request.param
    return found


def test_the_site_shows_the_repository(address: str | None) -> None:
    config = site.on_config(MkDocsConfig())
    assert config.repo_url == address
    assert config.repo_name == (address and "owner/name")


def test_links_to_pages_that_are_not_on_the_site_lead_to_the_repository(
    address: str | None,
) -> None:
    linked = site.in_site(TEXT)
    if address:
        at = f"{REPOSITORY}/blob/v{__version__}"
        speed = f"[Speed]({at}/docs/contributors/measured/speed.md#reading)"
        assert linked == f"{speed}, [licence]({at}/LICENSE), [own](groups.md)"
    else:
        speed = "Speed (`docs/contributors/measured/speed.md` in the repository)"
        assert linked == f"{speed}, licence (`LICENSE` in the repository), [own](groups.md)"
