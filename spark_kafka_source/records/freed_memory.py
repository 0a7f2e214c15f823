"""Reuse of freed memory for later allocations."""

_LARGEST_BLOCK_BYTES = 16 * 1024 * 1024


def keep_freed_memory() -> None:
    """Make glibc keep freed memory, up to 32 MiB, in this process from now on.

    Otherwise each buffer of a MiB or two (a fetch, a decompressed piece, an encoded batch) is
    mapped anew, zeroed by the kernel page by page, and unmapped. glibc raises its threshold to the
    largest block that it has seen freed (https://man7.org/linux/man-pages/man3/mallopt.3.html).
    This function frees such a block, which it never touches.
    """
    bytes(_LARGEST_BLOCK_BYTES)
