"""A hash of a topic's rows that depends on neither the reader nor the chunks."""

import hashlib
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def digest(table: pa.Table) -> str:
    """Return a hash of all rows, in order of partition and offset, whatever the chunks."""
    table = table.sort_by([("partition", "ascending"), ("offset", "ascending")]).combine_chunks()
    found = hashlib.sha256(b"%d" % table.num_rows)
    for name in table.column_names:
        _add(table[name].combine_chunks(), found.update)
    return found.hexdigest()


def _add(column: pa.Array, add: Callable[[bytes], object]) -> None:
    add(pc.is_valid(column).to_numpy(zero_copy_only=False).tobytes())
    if pa.types.is_list(column.type):
        lengths = pc.list_value_length(column).fill_null(-1)
        add(lengths.to_numpy().tobytes())
        for field in column.flatten().flatten():
            _add(field, add)
    elif pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        present = column.drop_null()
        add(pc.binary_length(present).to_numpy().tobytes())
        add(b"".join(present.cast(pa.binary()).to_pylist()))
    else:
        add(column.drop_null().cast(pa.int64()).to_numpy().tobytes())
