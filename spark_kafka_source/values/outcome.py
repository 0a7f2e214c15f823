"""What became of each row: nothing bad, or its first fault and where that is."""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.faults import Fault

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int32]

WHOLE = -1
"""The place of what is wrong with all of a row."""
COLUMNS = -2
"""Places of columns, which are looked at last, are this less their first slot."""


class Outcome:
    """`status` has a `Fault` for each row, and `place` where in the table, or column, it is."""

    def __init__(self, rows: int) -> None:
        self.status: Octets = np.zeros(rows, np.uint8)
        self.place: Places = np.zeros(rows, np.int32)

    def add(self, rows: Integers, fault: Fault, place: int) -> None:
        """Those rows are bad, if they were not before."""
        rows = rows[self.status[rows] == 0]
        self.status[rows] = fault
        self.place[rows] = place
