"""What can be wrong with the bytes of one row."""

from enum import IntEnum


class Fault(IntEnum):
    """Why a row is bad; `OK` where it is not."""

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
    SYNTAX = 30
    KIND = 31
    INTEGER = 32
    TIME = 33
    BASE64 = 34

    @property
    def reason(self) -> str:
        """In words, to come after the path of the field."""
        return _REASONS[self]


_REASONS = {
    Fault.OK: "nothing is wrong",
    Fault.TRUNCATED: "the value ends before the record does",
    Fault.TRAILING: "there are bytes after the record",
    Fault.VARINT: "no varint of 64 bits",
    Fault.INT_RANGE: "an int beyond 32 bits",
    Fault.BOOLEAN: "a boolean that is neither 0 nor 1",
    Fault.LENGTH: "a length that is negative or beyond the end of the value",
    Fault.COUNT: "more items than the value has room for, or fewer than none",
    Fault.BRANCH: "a branch that the writer's union does not have",
    Fault.SYMBOL: "a symbol that the enum does not have",
    Fault.UNRESOLVED: "what was written has no place in the reader's type",
    Fault.TEXT: "a string that is not UTF-8",
    Fault.DECIMAL: "a decimal without bytes, or beyond its precision",
    Fault.TIMESTAMP: "a time beyond what its column can hold",
    Fault.NESTING: "values nested too deeply",
    Fault.TAG: "no tag of a field: the number 0, a wire type that is none, or over 32 bits",
    Fault.GROUP: "a group that does not end, or an end without its start",
    Fault.NO_PROGRAM: "there is no writer's schema to decode it with",
    Fault.SYNTAX: "no JSON, or more than one value of it",
    Fault.KIND: "JSON of another kind than the column is of",
    Fault.INTEGER: "no whole number, or one beyond what the column can hold",
    Fault.TIME: "no date or time of ISO 8601",
    Fault.BASE64: "a string that is not base64",
}


class BadPlaceError(Exception):
    """What is wrong with a row, and where in the table of its program."""

    def __init__(self, fault: Fault, place: int) -> None:
        super().__init__(fault, place)
        self.fault, self.place = fault, place
