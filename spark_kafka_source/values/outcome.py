"""Outcome of each row: OK, or its first fault and the fault's place."""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.faults import Fault

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int32]

WHOLE = -1
"""The place of a fault that concerns the whole row."""
COLUMNS = -2
"""Places of columns count down from here: this minus the column's first slot. Columns are checked
last."""


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
