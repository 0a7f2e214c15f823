"""Leases of owner numbers, by which a process goes on with the ids of one that has ended.

The transactional ids of a worker have its owner number in them, which no other process may have.
Brokers keep each id for days. So a process does not draw a number of its own, if it finds one that
a former process on this machine has left. A lease is a file in a private folder, which a process
locks for as long as it lives. The file says what was begun last under each id.

A file is not used where it may be a copy, or older than what was begun: after the machine has
started again, in another container, or if its inode is not the one that it names. Whatever goes
wrong with a file, the process draws a random number.
"""

import fcntl
import hashlib
import os
import stat
import struct
import tempfile
import time
import uuid
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from spark_kafka_source.chance import CHANCE
from spark_kafka_source.errors import LocalError
from spark_kafka_source.logs import logger_of
from spark_kafka_source.producer import ProducerId

logger = logger_of(__name__)

OWNER_BITS = 54
"""The bits of an owner number. The others of an id's two numbers tell the worker's slots apart."""
# Ids that were aborted are never used again. Whoever finds many of them begins anew.
_MOST_DEAD = 128
# Brokers forget an id after a week without a transaction.
_OLD_SECONDS = 30 * 24 * 3600
_BOOT, _CONTAINER = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/mnt")
_HEADER = struct.Struct(">QQQI")
"""The device and inode of the file, the owner number, and a checksum."""
_RECORD = struct.Struct(">qhI")
"""The producer id and epoch that were begun last under an id, and a checksum."""
_DEAD = ProducerId(-1, -1)


class LeaseError(LocalError):
    """What is begun cannot be noted in the file of a lease, and the file cannot be deleted."""


class Owner:
    """An owner number that no other process has. A random one is not inherited."""

    begun: Sequence[ProducerId | None] = ()
    """What former processes have begun last under each id; None for an id to leave alone."""

    def __init__(self, number: int | None = None) -> None:
        """Draw a number, if none is given."""
        self.number = CHANCE.getrandbits(OWNER_BITS) if number is None else number

    def note(self, slot: int, producer: ProducerId | None) -> None:
        """Note the transaction that is about to begin in a slot. None: it is not inherited."""


class Lease(Owner):
    """An owner number with a file, which this process has locked. Closing it ends the lease.

    The child of a fork closes its copy, which leaves the parent's lock as it is.
    """

    def __init__(
        self, path: Path, descriptor: int, number: int, begun: Sequence[ProducerId | None]
    ) -> None:
        super().__init__(number)
        self.begun = begun
        self._path = path
        self._descriptor = descriptor
        self._is_kept = True
        self.close = weakref.finalize(self, os.close, descriptor)
        _leases.add(self)

    def note(self, slot: int, producer: ProducerId | None) -> None:
        """Write it to the file before a request to brokers. Without a file, no process inherits."""
        if not self.close.alive:
            raise LeaseError(f"{self._path} is closed: it belongs to the parent of this process")
        if not self._is_kept:
            return
        try:
            last_begun = _DEAD if producer is None else producer
            record = _record(self.number, slot, last_begun)
            place = _HEADER.size + slot * _RECORD.size
            if os.pwrite(self._descriptor, record, place) < len(record):
                raise OSError("it was written in part")
        except OSError as error:
            self._drop(error)

    def _drop(self, error: OSError) -> None:
        try:
            self._path.unlink(missing_ok=True)
        except OSError as other:
            what = f"{self._path} can be neither written ({error}) nor deleted ({other})"
            raise LeaseError(f"{what}. Make its folder writable, or delete the file") from other
        logger.info("No other process goes on with the transactional ids here: %s", error)
        self._is_kept = False


_leases: weakref.WeakSet[Lease] = weakref.WeakSet()


def _close_all() -> None:
    for lease in list(_leases):
        lease.close()


os.register_at_fork(after_in_child=_close_all)


def leased(*names: object) -> Owner:
    """Return a lease under these names, or a random number if there can be no lease.

    The names are all that the state of an id depends on: the cluster, the prefix, and the
    generation of transactions.
    """
    try:
        folder = _folder()
        key = _key(names)
        for path in sorted(folder.glob(f"{key}.*")):
            if (lease := _taken(path)) is not None:
                return lease
        return _made(folder, key)
    except OSError as error:
        logger.info("Transactional ids are used by one process only: %s", error)
        return Owner()


def _key(names: Sequence[object]) -> str:
    """Return the beginning of a file's name, for these names in this container since its boot."""
    here = _BOOT.read_text(), _CONTAINER.stat().st_ino
    return hashlib.sha256(repr((here, names)).encode()).hexdigest()[:32]


def _folder() -> Path:
    """Return the folder of leases. Raises `OSError` if others may write to it."""
    folder = Path(tempfile.gettempdir(), f"spark-kafka-source-{os.getuid()}")
    folder.mkdir(0o700, exist_ok=True)
    folder_stat = folder.lstat()
    is_private = stat.S_ISDIR(folder_stat.st_mode) and not stat.S_IMODE(folder_stat.st_mode) & 0o077
    if not is_private or folder_stat.st_uid != os.getuid():
        raise PermissionError(f"{folder} is no folder that only this user may use")
    return folder


def _taken(path: Path) -> Lease | None:
    """Return a file's lease; None if a process has it. A file that is of no use is deleted."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    lease = None
    try:
        if _is_locked(descriptor, path):
            try:
                lease = Lease(path, descriptor, *_read(descriptor))
            except ValueError as error:
                logger.info("%s is of no use, and is deleted: %s", path, error)
                path.unlink()
    finally:
        if lease is None:
            os.close(descriptor)
    return lease


def _is_locked(descriptor: int, path: Path) -> bool:
    """Lock a file. Return False if another process has it, or has deleted it meanwhile."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _made(folder: Path, key: str) -> Lease:
    """Make a file. It gets its name once it is locked and whole."""
    _tidy(folder)
    name = uuid.uuid4().hex
    hidden, path = folder / f".{name}", folder / f"{key}.{name}"
    descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner = CHANCE.getrandbits(OWNER_BITS)
        os.pwrite(descriptor, _header(descriptor, owner), 0)
        hidden.rename(path)
        return Lease(path, descriptor, owner, ())
    except BaseException:
        hidden.unlink(missing_ok=True)
        os.close(descriptor)
        raise


def _tidy(folder: Path) -> None:
    """Delete old files, also one that a process still has: its number is not inherited then."""
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            if path.lstat().st_mtime < time.time() - _OLD_SECONDS:
                path.unlink()


def _read(descriptor: int) -> tuple[int, list[ProducerId | None]]:
    """Return a file's owner number and what was begun. Raises `ValueError` for any damage."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    if len(data) < _HEADER.size or (len(data) - _HEADER.size) % _RECORD.size:
        raise ValueError(f"it has {len(data)} bytes")
    *_, owner, _ = _HEADER.unpack_from(data)
    if data[: _HEADER.size] != _header(descriptor, owner):
        raise ValueError("it is a copy, or damaged")
    begun: list[ProducerId | None] = []
    for slot, place in enumerate(range(_HEADER.size, len(data), _RECORD.size)):
        producer = ProducerId(*_RECORD.unpack_from(data, place)[:2])
        if data[place : place + _RECORD.size] != _record(owner, slot, producer):
            raise ValueError(f"the record of slot {slot} is damaged")
        begun.append(None if producer == _DEAD else producer)
    if begun.count(None) > _MOST_DEAD:
        raise ValueError("most of its transactional ids cannot be used again")
    return owner, begun


def _header(descriptor: int, owner: int) -> bytes:
    file_stat = os.fstat(descriptor)
    fields = struct.pack(">QQQ", file_stat.st_dev, file_stat.st_ino, owner)
    return fields + struct.pack(">I", crc32(fields))


def _record(owner: int, slot: int, producer: ProducerId) -> bytes:
    fields = struct.pack(">qh", *producer)
    return fields + struct.pack(">I", crc32(struct.pack(">QI", owner, slot) + fields))
