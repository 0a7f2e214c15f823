"""What is freed is kept for what is allocated next."""

_LARGEST_BLOCK_BYTES = 16 * 1024 * 1024


def keep_freed_memory() -> None:
    """Has glibc keep what is freed, up to 32 MiB, in this process from now on.

    Else every fetch, every piece that is decompressed and every batch that is encoded, of a MiB or
    two, is mapped anew, zeroed by the kernel page by page, and unmapped. glibc learns from the
    largest block that it has seen freed (https://man7.org/linux/man-pages/man3/mallopt.3.html);
    this one is never touched.
    """
    bytes(_LARGEST_BLOCK_BYTES)
