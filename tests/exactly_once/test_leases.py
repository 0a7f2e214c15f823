"""Leases of owner numbers: no two living processes have one. A file of no use is not used."""

import fcntl
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.exactly_once import leases
from spark_kafka_source.exactly_once.leases import Lease, LeaseError, Owner, leased
from spark_kafka_source.producer import ProducerId

PRODUCER, OTHER = ProducerId(7, 3), ProducerId(1 << 40, 32_767)
IN_CHILD = """
import sys, time
from spark_kafka_source.exactly_once.leases import leased
from spark_kafka_source.producer import ProducerId
found = leased("p")
found.note(0, None)
found.note(0, ProducerId(7, 3))
print(found.number, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the leases."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"spark-kafka-source-{os.getuid()}"


def lease(*names: object) -> Lease:
    found = leased(*names or ("p",))
    assert isinstance(found, Lease)
    return found


def ended(found: Lease) -> int:
    found.close()
    return found.number


@contextmanager
def process(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that has a lease, and the number of that."""
    started = subprocess.Popen(
        [sys.executable, "-c", IN_CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder.parent), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with started:
        assert started.stdout is not None
        try:
            yield started, int(started.stdout.readline())
        finally:
            started.kill()


def test_the_next_process_has_the_number_and_what_was_begun() -> None:
    first = lease()
    assert first.begun == ()
    for slot, producer in enumerate([PRODUCER, None, OTHER]):
        first.note(slot, producer)
    number = ended(first)
    second = lease()
    assert second.number == number
    assert second.begun == [PRODUCER, None, OTHER]


def test_two_at_once_have_two_numbers_and_the_files_stay_two() -> None:
    first, second = lease(), lease()
    assert first.number != second.number
    numbers = {ended(first), ended(second)}
    assert {lease().number for _ in range(3)} <= numbers  # Each is gone before the next one.


def test_a_lease_ends_with_the_object() -> None:
    number = lease().number
    assert lease().number == number


@pytest.mark.parametrize("others", [("q",), ("p", "SECOND"), ("p", "broker:9092")])
def test_other_names_have_other_leases(others: tuple[object, ...]) -> None:
    number = ended(lease("p"))
    assert lease(*others).number != number
    assert lease("p").number == number


def test_the_lease_of_a_process_that_was_killed_is_free(folder: Path) -> None:
    with process(folder) as (child, number):
        other = lease()
        assert other.number != number
        child.kill()
        child.wait()
        found = lease()
        assert (found.number, found.begun) == (number, [PRODUCER])


def test_a_process_that_stands_still_keeps_its_lease(folder: Path) -> None:
    with process(folder) as (child, number):
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        assert lease().number != number
        os.kill(child.pid, signal.SIGCONT)


def test_a_child_has_no_lock_of_its_parent_and_notes_nothing() -> None:
    found = lease()
    come, go = os.pipe()
    child = os.fork()
    if child == 0:  # It stays until the parent has looked.
        said = b"allowed"
        with suppress(LeaseError):
            said = b"refused"
            found.note(0, PRODUCER)
            said = b"allowed"
        os.write(go, said)
        signal.pause()
        os._exit(0)
    try:
        assert os.read(come, 7) == b"refused"
        other = lease()
        assert other.number != found.number  # The parent still has its lock.
        other.close()
        found.note(0, OTHER)
        number = ended(found)
        assert {lease().number, lease().number} <= {number, other.number}
        held = [lease(), lease()]
        assert number in {each.number for each in held}  # Not held by the child.
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(come)
        os.close(go)


def test_many_processes_at_once_have_as_many_numbers() -> None:
    context = multiprocessing.get_context("fork")
    rounds = []
    for _ in range(2):
        all_have_one, numbers = context.Barrier(8), context.SimpleQueue()

        def take(barrier: Any = all_have_one, numbers: Any = numbers) -> None:
            found = lease()
            barrier.wait()
            numbers.put(found.number)

        children = [context.Process(target=take) for _ in range(8)]
        for each in children:
            each.start()
        rounds.append({numbers.get() for _ in children})
        for each in children:
            each.join()
    first, second = rounds
    assert len(first) == 8
    assert second == first


# -- files that are of no use ----------------------------------------------------------------------


def the_file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


@pytest.fixture
def left(folder: Path) -> tuple[int, Path]:
    """A number that a process has left, and its file."""
    first = lease()
    first.note(0, PRODUCER)
    return ended(first), the_file(folder)


def garbled(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("place", range(0, 42, 3))
def test_a_damaged_file_is_not_used(place: int, left: tuple[int, Path]) -> None:
    number, path = left
    path.write_bytes(garbled(path.read_bytes(), place))
    found = lease()
    assert found.number != number
    assert found.begun == ()
    assert not path.exists()


@pytest.mark.parametrize("size", [0, 1, 27, 41])
def test_a_file_that_was_cut_is_not_used(size: int, left: tuple[int, Path]) -> None:
    number, path = left
    os.truncate(path, size)
    assert lease().number != number


def test_a_copy_is_not_used(left: tuple[int, Path]) -> None:
    """As from the image of a container: two processes may have the same copy."""
    number, path = left
    data = path.read_bytes()
    path.unlink()
    path.with_name("other").write_bytes(b"takes the inode")
    path.write_bytes(data)
    assert lease().number != number


def test_after_a_boot_and_in_another_container_files_are_not_used(
    left: tuple[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, _ = left
    for name in ("_BOOT", "_CONTAINER"):
        other = tmp_path / name
        other.write_text("another one")
        with monkeypatch.context() as patched:
            patched.setattr(leases, name, other)
            assert lease().number != number
    assert lease().number == number


def test_a_deleted_file_is_left_to_its_process(folder: Path) -> None:
    found = lease()
    the_file(folder).unlink()
    other = lease()
    assert other.number != found.number
    found.note(0, PRODUCER)
    number = ended(found)
    assert {lease().number, other.number}.isdisjoint({number})


def test_a_file_that_its_process_deletes_before_it_is_locked_is_not_used(
    left: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That process has begun what is not in the file."""
    number, path = left
    lock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        path.unlink(missing_ok=True)
        lock(descriptor, how)

    monkeypatch.setattr("fcntl.flock", late)
    assert lease().number != number


def test_old_files_are_deleted(left: tuple[int, Path]) -> None:
    _, path = left
    os.utime(path, (0, 0))
    lease("another")
    assert not path.exists()


def test_a_file_with_many_ids_that_were_aborted_is_not_used() -> None:
    first = lease()
    for slot in range(129):
        first.note(slot, None)
    number = ended(first)
    assert lease().number != number


# -- without a lease -------------------------------------------------------------------------------


def refused() -> None:
    found = leased("p")
    assert type(found) is Owner
    assert found.number != leased("p").number
    found.note(0, PRODUCER)


def test_a_folder_of_somebody_else_is_not_used(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    refused()


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(0o700)
    folder.symlink_to(other)
    refused()
    assert not list(other.iterdir())


@pytest.mark.parametrize("name", ["_BOOT", "_CONTAINER"])
def test_without_proc_numbers_are_random(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, name, Path("/nowhere/at/all"))
    refused()


def test_where_locks_cannot_be_had_numbers_are_random(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr("fcntl.flock", none)
    refused()


def test_what_cannot_be_noted_is_inherited_by_nobody(folder: Path) -> None:
    """The disk is full."""
    first = lease()
    first.note(0, PRODUCER)
    path = the_file(folder)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
        first.note(1, PRODUCER)
        first.note(2, PRODUCER)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, former)
    assert not path.exists()
    number = ended(first)
    assert lease().number != number


def test_nothing_begins_where_it_can_neither_be_noted_nor_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = lease()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("a read-only file system")

    monkeypatch.setattr(os, "pwrite", fail)
    monkeypatch.setattr(Path, "unlink", fail)
    with pytest.raises(LeaseError, match="read-only"):
        found.note(0, PRODUCER)
