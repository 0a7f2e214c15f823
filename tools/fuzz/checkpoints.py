"""JSON of a checkpoint: offsets from Spark, and files of a query's offset log."""

import atexit
import json
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.spark.checkpoint import hand_back
from spark_kafka_source.spark.lag_listener import _ours
from spark_kafka_source.spark.source.source_offset import SourceOffset


def offsets(data: bytes) -> None:
    """Any parsed JSON is read or refused. An offset that is read can be written."""
    text = data.decode(errors="replace")
    _ours(text)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return  # PySpark reports this error.
    with suppress(KafkaError):
        offset = SourceOffset.from_json(found)
        assert SourceOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset
        assert offset.follows(offset)
        assert all(0 <= each < 1 << 63 for each in offset.offsets.values())


def logs(data: bytes) -> None:
    """A file of the offset log is rewritten, or refused and not changed."""
    checkpoint = _checkpoint()
    log = checkpoint / "offsets" / "0"
    log.write_bytes(data)
    try:
        hand_back(checkpoint)
    except KafkaError:
        assert log.read_bytes() == data


@cache
def _checkpoint() -> Path:
    """Make one checkpoint for all inputs. A new one for each input would take too long."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("offsets", "commits"):
        (folder / name).mkdir()
    (folder / "commits" / "0").touch()
    return folder
