"""Reader of many JSON texts at once with the compiled tokenizer: sure rows and doubtful rows."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.json import kernels as k
from spark_kafka_source.values.json.compiled import Kernels
from spark_kafka_source.values.json.fast import Found
from spark_kafka_source.values.json.meaning import MAX_DEPTH
from spark_kafka_source.values.json.plan import plan

_MOST_BYTES = (1 << 31) - 1
_CELLS_PER_BYTE, _CELLS = 64, 1 << 22
"""The most cells, per byte of the rows and beyond that. A used cell takes 17 bytes of memory."""
_POWERS = np.array([10.0**power for power in range(23)])
_INTEGERS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_NUMPY = {pa.int8(): np.int8, pa.int16(): np.int16, pa.int32(): np.int32, pa.int64(): np.int64}
_TEXTS = (pa.binary(), pa.date32())
_NODE = 6


class TokenReader:
    """Reader of columns of any type. The kernels fill arrays, from which it builds columns."""

    def __init__(self, kind: pa.DataType) -> None:
        self._plan = plan(kind)
        shape = _Shape()
        shape.add(kind, 0)
        self._nodes, self._fields, self._names = shape.as_arrays()
        self._levels = shape.columns_by_level(self._nodes)
        self._room = np.ones(len(self._levels) - 1, np.int64)
        """The elements per row that each level needed before."""

    def read(
        self, kernels: Kernels, octets: Octets, starts: Integers, ends: Integers
    ) -> Found | None:
        """Read the rows. All are in the array. None if that takes too much memory."""
        rows = len(starts)
        most = _CELLS + _CELLS_PER_BYTE * int((ends - starts).sum())
        while True:
            capacity = self._room * rows + 64
            capacity[0] = rows
            per_level = np.diff(self._levels)
            if int((capacity * per_level).sum()) > most:
                return None
            cells = _Cells(capacity, self._levels)
            level, sure = cells.fill(
                kernels, octets, starts, ends, (self._nodes, self._fields, self._names)
            )
            if level == k.DONE:
                break
            self._room[level] *= 4
        array = _Columns(kernels, octets, cells, self._nodes, self._fields).array(
            0, self._plan.read
        )
        doubtful = np.flatnonzero(sure == 0)
        if self._plan.finish:
            array, more = self._plan.finish(array)
            doubtful = np.concatenate((doubtful, more))
        return Found(array, np.arange(rows), doubtful)


class _Shape:
    """Nodes of a type. Their columns are numbered level by level."""

    def __init__(self) -> None:
        self._nodes: list[list[int]] = []
        self._fields: list[tuple[str, int]] = []
        self._levels = 1

    def add(self, kind: pa.DataType, level: int) -> int:
        """Add a node and return its number. The nodes of items of a list or map come after it."""
        number = len(self._nodes)
        node = [k.TEXT, 0, level, 0, 0, int(pa.types.is_string(kind))]
        self._nodes.append(node)
        if pa.types.is_struct(kind):
            children = [(each.name, self.add(each.type, level)) for each in kind]
            node[k.KIND], node[k.FIRST], node[k.COUNT] = k.STRUCT, len(self._fields), len(children)
            self._fields += children
        elif pa.types.is_list(kind) or pa.types.is_map(kind):
            inner = self._levels
            self._levels += 1
            node[k.KIND], node[k.EXTRA] = k.LIST, inner
            if pa.types.is_map(kind):
                node[k.KIND] = k.MAP
                node[k.FIRST] = self.add(pa.string(), inner)
                self.add(kind.item_type, inner)
            else:
                node[k.FIRST] = self.add(kind.value_type, inner)
        elif pa.types.is_boolean(kind):
            node[k.KIND] = k.BOOLEAN
        elif kind in _INTEGERS:
            node[k.KIND], node[k.EXTRA] = k.INTEGER, (1 << _INTEGERS[kind]) - 1
        elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            node[k.KIND] = k.DOUBLE
        return number

    def as_arrays(self) -> tuple[Integers, Integers, Octets]:
        """Return nodes, fields, and names. The last node is for values that are not read."""
        order = sorted(range(len(self._nodes)), key=lambda number: self._nodes[number][k.LEVEL])
        for column, number in enumerate(order):
            self._nodes[number][k.COLUMN] = column
        nodes = np.array([*self._nodes, [k.SKIP] + [0] * (_NODE - 1)], np.int64)
        names = [name.encode() for name, _ in self._fields]
        ends = np.cumsum([0, *map(len, names)])
        fields = np.array(
            [(ends[place], ends[place + 1], node) for place, (_, node) in enumerate(self._fields)],
            np.int64,
        ).reshape(-1, 3)
        return nodes, fields, np.frombuffer(b"".join(names) or b"\0", np.uint8).copy()

    def columns_by_level(self, nodes: Integers) -> Integers:
        """Return the first column of each level, and the end of the last."""
        counts = np.bincount(nodes[:-1, k.LEVEL], minlength=self._levels)
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


class _Cells:
    """Arrays that the kernel fills: a state and two numbers for each column and element."""

    def __init__(self, capacity: Integers, columns: Integers) -> None:
        self._capacity, self._columns = capacity, columns
        sizes = np.repeat(capacity, np.diff(columns))
        self.bases = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        total = int(self.bases[-1])
        self.state: Octets = np.zeros(total, np.uint8)
        self.first: Integers = np.empty(total, np.int64)
        self.last: Integers = np.empty(total, np.int64)
        self.sizes: Integers = np.zeros(len(capacity), np.int64)
        self.sizes[0] = capacity[0]

    def fill(
        self,
        kernels: Kernels,
        octets: Octets,
        starts: Integers,
        ends: Integers,
        tables: tuple[Integers, Integers, Octets],
    ) -> tuple[int, Octets]:
        """Return DONE and the sure rows, or a level that needs more room."""
        sure: Octets = np.zeros(len(starts), np.uint8)
        opened = np.zeros((MAX_DEPTH, k.OPENED_SIZE), np.int64)
        level = kernels.tokenize(
            octets, starts, ends, *tables, self.bases, self._columns, self._capacity, self.sizes,
            np.zeros(len(self.sizes), np.int64), self.state, self.first, self.last,
            self.first.view(np.float64), _POWERS, opened, sure,
        )  # fmt: skip
        return level, sure


class _Columns:
    """Builder of Arrow arrays from cells."""

    def __init__(
        self, kernels: Kernels, octets: Octets, cells: _Cells, nodes: Integers, fields: Integers
    ) -> None:
        self._kernels, self._octets, self._cells = kernels, octets, cells
        self._nodes, self._fields = nodes, fields

    def array(self, number: int, kind: pa.DataType) -> pa.Array:
        """Return the elements of a node, in a type that `plan` reads."""
        node = self._nodes[number].tolist()
        count = int(self._cells.sizes[node[k.LEVEL]])
        base = int(self._cells.bases[node[k.COLUMN]])
        state = self._cells.state[base : base + count]
        first, last = (each[base : base + count] for each in (self._cells.first, self._cells.last))
        there = state != k.ABSENT
        validity = None
        if not there.all():
            validity = pa.py_buffer(np.packbits(there, bitorder="little"))
        if pa.types.is_struct(kind):
            children = self._fields[node[k.FIRST] :, k.NODE].tolist()
            arrays = [self.array(n, each.type) for n, each in zip(children, kind, strict=False)]
            return pa.Array.from_buffers(kind, count, [validity], children=arrays)
        if pa.types.is_list(kind) or pa.types.is_map(kind):
            return self._nested(node, kind, count, [validity, _offsets(there, last)])
        values: npt.NDArray[np.generic]
        if pa.types.is_boolean(kind):
            values = np.packbits(first.astype(np.bool_) & there, bitorder="little")
        elif pa.types.is_string(kind):
            return self._texts(state, first, last, validity)
        elif pa.types.is_floating(kind):
            values = self._doubles(state, first, last)
        else:
            values = first.astype(_NUMPY[kind], copy=False)
        return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(values)])

    def _nested(
        self, node: list[int], kind: pa.DataType, count: int, buffers: list[pa.Buffer | None]
    ) -> pa.Array:
        items = node[k.FIRST]
        if pa.types.is_list(kind):
            child = self.array(items, kind.value_type)
        else:
            pair = [self.array(items, kind.key_type), self.array(items + 1, kind.item_type)]
            child = pa.StructArray.from_arrays(pair, fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(kind, count, buffers, children=[child])

    def _texts(
        self, state: Octets, first: Integers, last: Integers, validity: pa.Buffer | None
    ) -> pa.Array:
        size = int((last - first)[state != k.ABSENT].sum())
        if size > _MOST_BYTES:
            raise OverflowError(f"a column of {size} bytes; give it fewer rows at once")
        offsets, out = np.empty(len(state) + 1, np.int32), np.empty(size, np.uint8)
        self._kernels.copy_texts(self._octets, state, first, last, offsets, out)
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(out)]
        return pa.Array.from_buffers(pa.string(), len(state), buffers)

    def _doubles(self, state: Octets, first: Integers, last: Integers) -> Integers:
        """Return the doubles as bits. Arrow parses numbers of many digits."""
        long = np.flatnonzero(state == k.LONG)
        if len(long):
            there = np.full(len(long), k.THERE, np.uint8)
            texts = self._texts(there, first[long], last[long], None)
            first = first.copy()
            first.view(np.float64)[long] = texts.cast(pa.float64()).to_numpy()
        return first


def _offsets(there: npt.NDArray[np.bool_], last: Integers) -> pa.Buffer:
    """Return the end of each list's items. An absent list ends where the one before it ends."""
    offsets = np.zeros(len(there) + 1, np.int32)
    np.maximum.accumulate(np.where(there, last, 0), out=offsets[1:])
    return pa.py_buffer(offsets)
