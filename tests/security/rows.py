"""What the topic of the fixture `thousand` holds."""

ROWS_TOPIC = "thousand"
PARTITIONS = 4
ROWS = [f"row {number}".encode() for number in range(1000)]
"""The values of all records: those of partition p are `ROWS[p::PARTITIONS]`."""
