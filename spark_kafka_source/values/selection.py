"""Selection of a schema's columns: all, or those of paths such as `address.city`."""

from collections.abc import Iterable

MAX_COLUMNS = 10_000

Tree = dict[str, "Tree"]


def tree_of(fields: Iterable[str] | None) -> Tree:
    """Return the paths as a tree of names.

    A name with nothing in it stands for all of its fields.
    """
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
