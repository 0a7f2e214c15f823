"""The entry point of the commands. A failure is one line on standard error, and an exit code.

0: done. 1: failed, at least in part. 2: wrong arguments. 130: ended by Ctrl-C. 143: by SIGTERM.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from spark_kafka_source.command_line.arguments import PROGRAM, parse
from spark_kafka_source.command_line.output import Output
from spark_kafka_source.errors import ConfigurationError, KafkaError
from spark_kafka_source.spelling import spelt

_COMMANDS = "spark_kafka_source.command_line"
DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: those of the process). Return the exit code."""
    parsed = parse(arguments)
    try:
        # Imported only now, so that `--help` does not wait for Arrow.
        command = import_module(f"{_COMMANDS}.{parsed.module}")
        with spelt(import_module(f"{_COMMANDS}.configuration").spelling(parsed)):
            status: int = getattr(command, parsed.function)(parsed, Output(as_json=parsed.json))
        sys.stdout.flush()
    except BrokenPipeError:  # Nobody reads the rest, as with `| head`.
        _drop_output()
        return DONE
    except OSError as error:  # Such as a disk that is full.
        _drop_output()
        return _failed(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ConfigurationError as error:
        return _failed(error, MISUSED)
    except KafkaError as error:
        return _failed(error, FAILED)
    return status


def _drop_output() -> None:
    """Send the rest of the output nowhere. Else Python's flush at the exit would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(error: Exception, status: int) -> int:
    sys.stderr.write(f"{PROGRAM}: {error}\n")
    return status
