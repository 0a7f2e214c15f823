"""CRC-32C, the checksum of record batches (https://kafka.apache.org/documentation/#recordbatch)."""


def crc32c(data: bytes | bytearray | memoryview, so_far: int = 0) -> int:
    """Return the checksum of `data`, which follows bytes with the checksum `so_far`."""
    # The library imports a parser of mail to know its version. A process that plans needs neither.
    from crc32c import crc32c as checksum  # noqa: PLC0415

    return checksum(data, so_far)
