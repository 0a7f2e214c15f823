"""The command `produce`: each line of standard input becomes a record of a topic."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial

from spark_kafka_source import typed
from spark_kafka_source.command_line.configuration import configuration
from spark_kafka_source.command_line.input_lines import LineError, Lines, read_lines
from spark_kafka_source.command_line.line_columns import Parse, from_json, plain, serialized
from spark_kafka_source.command_line.output import Output
from spark_kafka_source.command_line.sending import Sending
from spark_kafka_source.command_line.serializers import PLAIN, Serializer, Serializers, Texts
from spark_kafka_source.command_line.stop_signals import Stopped, StopSignals
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.producer.kafka_producer import KafkaProducer
from spark_kafka_source.producer.producer_config import config_from_arguments
from spark_kafka_source.typed import TypedWriteConfig

_LONGEST_LINE_BYTES = 64 << 20
"""JSON may have six characters for a byte of a record. A longer line fits no record."""

_LAST_SECONDS = 5
"""The longest wait of a stopped command for records in flight."""

_PROGRESS_SECONDS = 1


class NotAllWrittenError(LocalError):
    """A line was not written, or its outcome is unknown. The text says how many were written."""

    def __init__(self, topic: str, failure: str, outcome: str) -> None:
        super().__init__(topic, failure, outcome)
        self.topic, self.failure, self.outcome = topic, failure, outcome

    def _text(self) -> str:
        return f"Topic '{self.topic}': {self.failure}. {self.outcome}"


def produce(arguments: argparse.Namespace, output: Output) -> int:
    """Write lines as they come, until the last line, a line that is no record, or a stop.

    The lines before that are written. Returns 0, or the exit code that shells expect of a stopped
    command.
    """
    _check(arguments)
    topic = arguments.topic
    config = config_from_arguments(configuration(arguments))
    # The producer gets bytes: this command encodes typed records itself.
    plain_config = replace(config, typed=TypedWriteConfig())
    with ExitStack() as undo, KafkaProducer.of(plain_config) as producer, StopSignals() as stops:
        # Half of the memory, so that `send` finds room: a stop has to wait while `send` waits for
        # room.
        sending = Sending(producer, topic, stops, config.buffer_memory // 2)
        try:
            with stops.allowed():
                producer.partitions_for(topic)
                parse = _parser(arguments, _serializers(config.typed, topic, undo))
            _send_lines(sending, parse, stops, output)
        except Stopped as stopped:
            with suppress(Stopped):
                sending.wait_for_seconds(_LAST_SECONDS)
            # Records without an answer by now are given up.
            producer.close(0)
            output.note(f"Topic '{topic}': stopped. {sending.outcome}")
            return stopped.status
    if sending.failure is not None:
        raise NotAllWrittenError(topic, str(sending.failure), sending.outcome)
    output.note(f"Topic '{topic}': {sending.outcome}")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.json and arguments.key_separator is not None:
        raise ConfigurationError("--key-separator", "has no effect with '--json'", "Leave it out")


def _serializers(config: TypedWriteConfig, topic: str, undo: ExitStack) -> Serializers:
    """Return the serializers of the parts that have a format."""
    serializers: dict[str, Serializer] = {part: Texts(part) for part in config.texts}
    if config.parts:
        # Imported only now, so that other commands do not wait for all formats.
        from spark_kafka_source.command_line import typed_serializers  # noqa: PLC0415

        encoding = undo.enter_context(closing(typed.TypedEncoding(config)))
        serializers |= typed_serializers.typed_serializers(encoding, topic)
    return serializers


def _parser(arguments: argparse.Namespace, serializers: Serializers) -> Parse:
    if arguments.json:
        return partial(from_json, serializers={**PLAIN, **serializers})
    return serialized(plain(arguments.key_separator), serializers)


def _send_lines(sending: Sending, parse: Parse, stops: StopSignals, output: Output) -> None:
    shown_seconds = time.monotonic()
    try:
        for lines in _stoppable(read_lines(sys.stdin.buffer, _LONGEST_LINE_BYTES), stops):
            sending.send(parse(lines))
            if sending.failure is not None:
                break
            if time.monotonic() - shown_seconds >= _PROGRESS_SECONDS:
                shown_seconds = time.monotonic()
                output.progress(sending.written)
    except LineError as error:
        sending.fails(error)
    finally:
        output.progress("")
    sending.wait()


def _stoppable(reader: Iterator[Lines], stops: StopSignals) -> Iterator[Lines]:
    """Yield the same lines. A stop is allowed while the command waits for some."""
    while True:
        with stops.allowed():
            lines = next(reader, None)
        if lines is None:
            return
        yield lines
