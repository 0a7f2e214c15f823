"""`python -m spark_kafka_source.spark.checkpoint DIR`: a checkpoint for `format("kafka")` again.

The offset log of a query has one file for each micro-batch, `offsets/N`: a version, a line about
the query, then a line of JSON for each source. Lines that this package wrote get the form that
Spark's own connector reads. The cluster's id, topic ids and leader epochs are dropped: only this
package knows them.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from spark_kafka_source.errors import ConfigurationError, KafkaError
from spark_kafka_source.secret import shown
from spark_kafka_source.spark.source.source_offset import CheckpointError, SourceOffset, by_topic

_LINES_BEFORE_OFFSETS = 2
_NUMBER = "[0-9]{1,19}"


def hand_back(checkpoint: Path) -> list[int]:
    """Rewrite the offset log of a stopped query in place. Return the rewritten micro-batches.

    `checkpoint` is a local directory. For one on another file system, copy it here, and back.
    Before that, run the query once more with `Trigger.AvailableNow`, so that it finishes its last
    micro-batch. Raises `ConfigurationError` if the last micro-batch is not finished, or if there is
    no offset log. Raises `LocalError` if the log holds lines that no query writes. If it raises one
    of these, nothing has been changed.
    """
    logs = _batches(checkpoint / "offsets")
    if not logs:
        expected = "Give the checkpointLocation of a stopped query"
        raise ConfigurationError("checkpoint", f"{checkpoint} has no offset log", expected)
    if max(logs) not in _batches(checkpoint / "commits"):
        raise ConfigurationError(
            "checkpoint",
            f"micro-batch {max(logs)} was planned and not finished",
            "Let the query finish it with format('pykafka') first",
        )
    texts = {path: _for_kafka(_text(path)) for path in logs.values()}
    for path, text in texts.items():
        _replace(path, text)
    return sorted(logs)


def _batches(directory: Path) -> dict[int, Path]:
    """Return the files of a log by micro-batch. Other files beside them, as checksums, are left."""
    if not directory.is_dir():
        return {}
    return {
        int(path.name): path for path in directory.iterdir() if re.fullmatch(_NUMBER, path.name)
    }


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except ValueError as error:
        raise CheckpointError(f"{path} is not UTF-8, as an offset log is: {error}") from error


def _for_kafka(text: str) -> str:
    lines = text.split("\n")
    head, offsets = lines[:_LINES_BEFORE_OFFSETS], lines[_LINES_BEFORE_OFFSETS:]
    return "\n".join([*head, *map(_line_for_kafka, offsets)])


def _line_for_kafka(line: str) -> str:
    offset_json = _json(line) if line.startswith("{") else None
    if not isinstance(offset_json, dict) or not isinstance(offset_json.get("version"), int):
        return line  # The line of another source, or of none, stays unchanged.
    return json.dumps(by_topic(SourceOffset.from_json(offset_json).offsets), separators=(",", ":"))


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        text = f"The line {shown(line)} of an offset log is not JSON ({error})"
        raise CheckpointError(text) from error


def _replace(path: Path, text: str) -> None:
    # Hadoop's local file system would check the new text against the old checksum.
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    beside = path.parent / f".{path.name}.new"
    beside.write_text(text, "utf-8")
    beside.replace(path)


def main() -> None:
    """Run `hand_back` on the directory that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="the query's checkpointLocation, local")
    try:
        handed_back = hand_back(parser.parse_args().checkpoint)
    except (KafkaError, OSError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    sys.stdout.write(f"{len(handed_back)} micro-batches are as format('kafka') reads them\n")


if __name__ == "__main__":
    main()
