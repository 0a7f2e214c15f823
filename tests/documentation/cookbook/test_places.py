"""The places that the recipes write to: a reader may run one recipe after another."""

import re
from collections import defaultdict

from tests.documentation.pages import COOKBOOK, recipes, under

_PLACE = re.compile(r'"(/data/[^"]+)"')
_CHECKPOINT = re.compile(r'"checkpointLocation", f?"([^"]+)"')


def test_no_two_recipes_write_to_one_place() -> None:
    of_place = defaultdict[str, set[str]](set)
    checkpoints = []
    for page in COOKBOOK.glob("*.md"):
        for name in recipes(page):
            source = "\n".join(block.source for block in under(page, name))
            checkpoints += _CHECKPOINT.findall(source)
            for place in _PLACE.findall(source):
                of_place[place].add(f"{page.name}: {name}")
    assert {place: names for place, names in of_place.items() if len(names) > 1} == {}
    assert len(checkpoints) > 10
    assert [each for each in checkpoints if not each.startswith("/data/checkpoints/")] == []
