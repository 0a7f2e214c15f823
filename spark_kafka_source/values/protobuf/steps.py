"""Fields that a writer's messages are known to hold, in the order in which they are written.

Other fields, and fields in another order, are read too, but one row at a time.
"""

from spark_kafka_source.values.protobuf.program import Op, Program, Row, Step, Table
from spark_kafka_source.values.protobuf.schema import (
    MESSAGES,
    Field,
    Message,
    Schema,
    Wire,
    tag_of,
    wire_of,
)

MAX_TAG_BYTES = 4


def program_of(table: Table, writer: Schema, message: Message) -> Program:
    """Return the program that fills the table from what the writer wrote as `message`."""
    written: list[Message | None] = [None] * len(table.nodes)
    written[0] = message
    steps = []
    for number, node in enumerate(table.nodes):
        rows = {row.number: row for row in table.rows[node.first : node.stop]}
        found, known = written[number], []
        for field in sorted(found.fields, key=_number) if found else ():
            row = rows.get(field.number)
            if row and row.child >= 0 and field.kind in MESSAGES:
                written[row.child] = writer.messages[field.type_name]
            if step := _step(field, row):
                known.append(step)
        steps.append(tuple(known))
    return Program(table, tuple(steps))


def _number(field: Field) -> int:
    return field.number


def _step(field: Field, row: Row | None) -> Step | None:
    """Return the step of a field. None for groups, and for tags that are too long."""
    wire = Wire.SIZED if field.packed else wire_of(field.kind)
    tag = tag_of(field.number, wire)
    if wire is Wire.GROUP or len(tag) > MAX_TAG_BYTES:
        return None
    if row is None or not (row.wire == wire or (row.may_be_packed and wire is Wire.SIZED)):
        row = Row(-1, field.number, wire, Op.SKIP, -1, -1, -1, 0, -1, -1, -1)
    mask = (1 << 8 * len(tag)) - 1
    repeated = row.level >= 0 or (row.op == Op.SKIP and field.repeated)
    return Step(row, wire, int.from_bytes(tag, "little"), mask, len(tag), repeated)
