"""Children end with this process, and ignore signals of the terminal. There is no JVM here."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from spark_kafka_source.testing.child import Child, RemovedDirectory
from tests.testing.processes import still_there

WAIT_MS = 30_000
FOREVER = ["sleep", "1000"]


@pytest.fixture
def forever(tmp_path: Path) -> Iterator[Child]:
    with closing(Child(FOREVER, output=tmp_path / "out", errors=tmp_path / "out")) as child:
        yield child


def run(command: list[str], folder: Path) -> Child:
    return Child(command, output=folder / "output", errors=folder / "errors")


def test_output_and_errors_are_appended_to_their_files(tmp_path: Path) -> None:
    for word in ("one", "two words"):
        command = ["sh", "-c", 'echo "$1"; echo "$1!" >&2', "sh", word]
        assert run(command, tmp_path).wait(WAIT_MS) == 0
    assert (tmp_path / "output").read_text() == "one\ntwo words\n"
    assert (tmp_path / "errors").read_text() == "one!\ntwo words!\n"


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert run(["cat"], tmp_path).wait(WAIT_MS) == 0


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -TERM $$", 143)])
def test_the_exit_status_is_the_commands(tmp_path: Path, script: str, status: int) -> None:
    child = run(["sh", "-c", script], tmp_path)
    assert child.wait(WAIT_MS) == status
    assert not child.running


def test_what_cannot_be_run_says_so(tmp_path: Path) -> None:
    assert run(["/no/such/program"], tmp_path).wait(WAIT_MS) == 127
    assert "/no/such/program" in (tmp_path / "errors").read_text()


def test_the_process_id_is_the_commands(tmp_path: Path) -> None:
    own = tmp_path / "own"
    os.mkfifo(own)
    with closing(run(["sh", "-c", f"echo $$ >'{own}'; exec sleep 1000"], tmp_path)) as child:
        assert int(own.read_text()) == child.pid
        assert child.running


def test_waiting_is_bounded(forever: Child) -> None:
    assert forever.wait(1) is None
    assert forever.running


def test_close_kills_even_what_is_paused(forever: Child) -> None:
    process = psutil.Process(forever.pid)
    forever.signal(signal.SIGSTOP)
    forever.close()
    assert not process.is_running()
    forever.close()


def test_a_signal_to_what_has_ended_does_nothing(tmp_path: Path) -> None:
    child = run(["true"], tmp_path)
    child.wait(WAIT_MS)
    child.signal(signal.SIGTERM)


def test_it_is_out_of_reach_of_the_terminal(forever: Child) -> None:
    assert os.getsid(forever.pid) != os.getsid(0)
    assert os.getpgid(forever.pid) != os.getpgid(0)


def test_a_directory_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    (folder / "within").mkdir(parents=True)
    with closing(RemovedDirectory(folder)):
        assert folder.exists()
    assert not folder.exists()


PARENT = """
import sys
from pathlib import Path
from spark_kafka_source.testing.child import Child, RemovedDirectory
folder = Path(sys.argv[1])
directory = RemovedDirectory(folder)
children = [Child(["sleep", "1000"], output=folder / "o", errors=folder / "e") for _ in range(3)]
print(*(child.pid for child in children), flush=True)
sys.stdin.read()
"""


def test_a_killed_parent_leaves_neither_child_nor_directory(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:
        assert parent.stdout
        pids = {int(pid) for pid in parent.stdout.readline().split()}
        left = psutil.Process(parent.pid).children(recursive=True)
        assert len(pids) == 3
        assert pids <= {process.pid for process in left}
        parent.kill()
        assert not still_there(left)
    assert not folder.exists()
