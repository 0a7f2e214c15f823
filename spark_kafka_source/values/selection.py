"""Which columns of a schema are wanted: all, or those of some paths such as `address.city`."""

from collections.abc import Iterable

MAX_COLUMNS = 10_000

Tree = dict[str, "Tree"]


def tree_of(fields: Iterable[str] | None) -> Tree:
    """Names within names; nothing within a name stands for all of it."""
    tree: Tree = {}
    paths = sorted(fields or (), key=len)
    for path in paths:
        node, *names = tree, *path.split(".")
        for place, name in enumerate(names):
            if name in node and not node[name]:
                break  # All of it is wanted already.
            node = node.setdefault(name, {})
            if place == len(names) - 1:
                node.clear()
    return tree
