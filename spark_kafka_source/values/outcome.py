"""What became of each row: nothing bad, or its first fault and where that is."""

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.values.faults import Fault


class Outcome:
    """`status` has a `Fault` for each row, and `place` where in the table, or column, it is.

    Places of columns, which are looked at last, are -1 less their first slot.
    """

    def __init__(self, rows: int) -> None:
        self.status: Octets = np.zeros(rows, np.uint8)
        self.place: npt.NDArray[np.int32] = np.zeros(rows, np.int32)

    def add(self, rows: Integers, fault: Fault | Octets, place: int) -> None:
        """Those rows are bad, if they were not before."""
        new = self.status[rows] == 0
        rows = rows[new]
        self.status[rows] = fault[new] if isinstance(fault, np.ndarray) else fault
        self.place[rows] = place
