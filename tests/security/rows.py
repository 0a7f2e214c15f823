"""The rows in the topic of the fixture `thousand`."""

ROWS_TOPIC = "thousand"
PARTITIONS = 4
ROWS = [f"row {number}".encode() for number in range(1000)]
"""The values of all records. Partition p has `ROWS[p::PARTITIONS]`."""
