"""Selection of columns and of their fields: all, or those of paths such as `address.city`."""

from collections.abc import Iterable

import pyarrow as pa

from spark_kafka_source.values.ddl import array_of
from spark_kafka_source.values.errors import SchemaError, quoted

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


def projected(kind: pa.DataType, fields: Iterable[str] | None) -> pa.DataType:
    """Return the type with only the fields of these paths, such as `address.city`.

    Without `fields` the type stays whole. The path of a field in a list's items, or in a map's
    values, is the path of the list or map, a dot, and the field's name. Raises `SchemaError` for a
    missing field.
    """
    return _cut(kind, tree_of(fields), "")


def _cut(kind: pa.DataType, wanted: Tree, path: str) -> pa.DataType:
    if not wanted:
        return kind
    if pa.types.is_list(kind):
        return array_of(_cut(kind.value_type, wanted, f"{path}[]"))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _cut(kind.item_type, wanted, f"{path}{{}}"))
    if not pa.types.is_struct(kind):
        found = f"{kind} has no field {quoted(next(iter(wanted)))}"
        raise SchemaError(path, found, "Fields are those of objects")
    names = [each.name for each in kind]
    if missing := sorted(wanted.keys() - set(names)):
        expected = f"It has {', '.join(names)}"
        raise SchemaError(path, f"there is no field {quoted(missing[0])}", expected)
    return pa.struct(
        [
            (each.name, _cut(each.type, wanted[each.name], f"{path}.{each.name}".lstrip(".")))
            for each in kind
            if each.name in wanted
        ]
    )
