"""Faults in the bytes of one row, and the outcome of each row: its first fault, and the place."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int32]

WHOLE = -1
"""The place of a fault that concerns the whole row."""
COLUMNS = -2
"""Places of columns count down from here: this minus the column's first slot. Columns are checked
last."""


class Fault(IntEnum):
    """Reason why a row is bad. `OK` for a good row."""

    OK = 0
    TRUNCATED = 1
    TRAILING = 2
    VARINT = 3
    INT_RANGE = 4
    BOOLEAN = 5
    LENGTH = 6
    COUNT = 7
    BRANCH = 8
    SYMBOL = 9
    UNRESOLVED = 10
    TEXT = 11
    DECIMAL = 12
    TIMESTAMP = 13
    NESTING = 14
    NO_PROGRAM = 15
    TAG = 16
    GROUP = 17
    ANY = 18
    SYNTAX = 30
    KIND = 31
    INTEGER = 32
    TIME = 33
    BASE64 = 34
    INVALID = 35

    @property
    def reason(self) -> str:
        """Return the reason in words. Error texts put it after the path of the field."""
        return _REASONS[self]


_REASONS = {
    Fault.OK: "nothing is wrong",
    Fault.TRUNCATED: "the value ends before the record does",
    Fault.TRAILING: "there are bytes after the record",
    Fault.VARINT: "not a varint of 64 bits",
    Fault.INT_RANGE: "an int beyond 32 bits",
    Fault.BOOLEAN: "a boolean that is neither 0 nor 1",
    Fault.LENGTH: "a length that is negative or beyond the end of the value",
    Fault.COUNT: "more items than the value has bytes for, or a negative count",
    Fault.BRANCH: "a branch that the writer's union does not have",
    Fault.SYMBOL: "a symbol that the enum does not have",
    Fault.UNRESOLVED: "the written value has no place in the reader's type",
    Fault.TEXT: "a string that is not UTF-8",
    Fault.DECIMAL: "no decimal, or one beyond its precision",
    Fault.TIMESTAMP: "a time beyond what its column can hold",
    Fault.NESTING: "values nested too deeply",
    Fault.TAG: "not a field tag: the number 0, an unknown wire type, or over 32 bits",
    Fault.GROUP: "a group that does not end, or an end without its start",
    Fault.ANY: "an Any with a message that the schema does not have, or that has no JSON",
    Fault.NO_PROGRAM: "there is no writer's schema to decode it with",
    Fault.SYNTAX: "not JSON, or more than one JSON value",
    Fault.KIND: "a JSON value of another kind than the column",
    Fault.INTEGER: "not a whole number, or beyond the range of the column",
    Fault.TIME: "not a date or time in ISO 8601",
    Fault.BASE64: "a string that is not base64",
    Fault.INVALID: "not valid by the JSON Schema",
}


class Outcome:
    """Outcome per row: a `Fault` in `status`, and in `place` its place in the table, or column."""

    def __init__(self, rows: int) -> None:
        self.status: Octets = np.zeros(rows, np.uint8)
        self.place: Places = np.zeros(rows, np.int32)

    def add(self, rows: Integers, fault: Fault, place: int) -> None:
        """Mark these rows as bad. A row keeps its first fault."""
        rows = rows[self.status[rows] == 0]
        self.status[rows] = fault
        self.place[rows] = place
