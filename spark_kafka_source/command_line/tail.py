"""The command `tail`: the newest records of a topic, or all from a place on. It joins no group."""

import argparse
import base64
import heapq
import json
import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.admin.reset_targets import timestamp_of
from spark_kafka_source.command_line import json_form
from spark_kafka_source.command_line.configuration import configuration
from spark_kafka_source.command_line.json_form import Convert, to_json_form
from spark_kafka_source.command_line.output import BASE64, Output
from spark_kafka_source.command_line.serializers import PLAIN, NoRecordError
from spark_kafka_source.consumer.consumer_config import VOCABULARY
from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords
from spark_kafka_source.consumer.kafka_consumer import KafkaConsumer
from spark_kafka_source.errors import ConfigurationError, KafkaTimeoutError
from spark_kafka_source.records import NO_TIMESTAMP
from spark_kafka_source.secret import printable
from spark_kafka_source.timestamps import iso_time, refuse_other_numbers
from spark_kafka_source.topic_partition import TopicPartition
from spark_kafka_source.typed import PARTS, FormatConfig

_DEFAULT_COUNT = 10
# Some offsets have no record, after compaction or for transaction markers. The search for records
# goes back no further than this: a whole log takes too long.
_FURTHEST = 100_000
_POLL_MS = 500
# A partition without a leader must not keep the command from ending.
_PATIENCE_SECONDS = 60

Offsets = Mapping[TopicPartition, int]


def tail(arguments: argparse.Namespace, output: Output) -> int:
    """Show records up to the present ends of the partitions, or with `--follow` as they come."""
    # Without a group there are no committed offsets.
    settings = {"auto.offset.reset": "earliest", **configuration(arguments)}
    with KafkaConsumer(**settings) as consumer:
        partitions = _partitions(consumer, arguments)
        ends = consumer.end_offsets(partitions)
        log = _Log(consumer, _typed_parts(settings))
        shown = _Shown(output, arguments, log.forms)
        if arguments.begin is None and arguments.group is None:
            shown.all(_newest(log, arguments.count or _DEFAULT_COUNT, ends))
            if arguments.follow:
                shown.all(_for_ever(log, ends))
            return 0
        begin = _begin(consumer, arguments, ends)
        records = _for_ever(log, begin) if arguments.follow else _until(log, begin, ends)
        shown.all(records, arguments.count)
    return 0


def _typed_parts(configuration: Mapping[str, object]) -> list[str]:
    settings = VOCABULARY.settings(configuration)
    return [part for part in PARTS if FormatConfig.from_settings(settings, part).is_typed]


class _Log:
    """The topic, read by a consumer. `forms` has the JSON forms of its typed keys and values.

    A form is known once a record has come. It stays the same while the consumer lives.
    """

    def __init__(self, consumer: KafkaConsumer, typed_parts: Collection[str]) -> None:
        self.consumer, self._typed_parts = consumer, typed_parts
        self.forms: dict[str, Convert] = {}

    def poll(self) -> ConsumerRecords:
        records = self.consumer.poll(_POLL_MS)
        if len(self.forms) < len(self._typed_parts) and len(records):
            schema = records.to_batches()[0].schema
            self.forms |= {
                part: to_json_form(schema.field(part).type) for part in self._typed_parts
            }
        return records


def _newest(log: _Log, count: int, ends: Offsets) -> list[ConsumerRecord]:
    """Return the newest records by timestamp. Look further back if that finds too few records."""
    starts = log.consumer.beginning_offsets(ends)
    reach = count
    while True:
        begin = {partition: max(starts[partition], ends[partition] - reach) for partition in ends}
        newest = heapq.nlargest(count, _until(log, begin, ends), key=_age)
        if len(newest) == count or begin == starts or reach > _FURTHEST:
            return newest[::-1]
        reach *= 10


def _age(record: ConsumerRecord) -> tuple[int, int]:
    return (record.timestamp_ms or 0, record.offset)


def _partitions(
    consumer: KafkaConsumer, arguments: argparse.Namespace
) -> Collection[TopicPartition]:
    partitions = consumer.partitions_for(arguments.topic)
    numbers = arguments.partition
    if numbers is None:
        return partitions
    wanted = {TopicPartition(arguments.topic, number) for number in numbers}
    if unknown := wanted.difference(partitions):
        there = f"There are 0 to {len(partitions) - 1}"
        raise ConfigurationError("--partition", "found {}", there, min(unknown).partition)
    return sorted(wanted)


def _begin(
    consumer: KafkaConsumer, arguments: argparse.Namespace, ends: Offsets
) -> dict[TopicPartition, int]:
    starts = consumer.beginning_offsets(ends)
    if arguments.group is not None:
        with KafkaAdmin(**configuration(arguments)) as admin:
            committed = admin.list_group_offsets(arguments.group)
        offsets = {each: at.offset for each, at in committed.items() if each in ends}
    else:
        offsets = _wanted(consumer, arguments.begin, ends)
    return {each: min(max(offsets.get(each, 0), starts[each]), ends[each]) for each in ends}


def _wanted(consumer: KafkaConsumer, begin: str, ends: Offsets) -> dict[TopicPartition, int]:
    if begin == "earliest":
        return {}
    if begin == "latest":
        return dict(ends)
    if re.fullmatch(r"-\d{1,18}", begin):
        return {each: end + int(begin) for each, end in ends.items()}
    offsets = consumer.offsets_for_times(dict.fromkeys(ends, _milliseconds(begin)))
    return {each: ends[each] if at is None else at.offset for each, at in offsets.items()}


def _milliseconds(text: str) -> int:
    if re.fullmatch(r"[0-9]{5,18}", text):
        refuse_other_numbers("--from", int(text))
        return int(text)
    try:
        timestamp = timestamp_of(text)
    except ConfigurationError:
        timestamp = None
    if timestamp is None or timestamp < 0:
        expected = "Give 'earliest', 'latest', '-N', a time as '2026-05-04T13:00:00' or 'PT1H'"
        raise ConfigurationError("--from", "found {}", expected, text)
    return timestamp


def _assign(consumer: KafkaConsumer, begin: Offsets) -> None:
    consumer.assign(begin)
    consumer.resume(*begin)
    for partition, offset in begin.items():
        consumer.seek(partition, offset)


def _for_ever(log: _Log, begin: Offsets) -> Iterator[ConsumerRecord | None]:
    """Yield records as they come, and None each time when all records at hand were yielded."""
    _assign(log.consumer, begin)
    while True:
        yield from log.poll()
        yield None


def _until(log: _Log, begin: Offsets, ends: Offsets) -> Iterator[ConsumerRecord]:
    """Yield the records before `ends`. Raises `KafkaTimeoutError` if none come for a minute."""
    left = {each for each, offset in begin.items() if offset < ends[each]}
    _assign(log.consumer, {each: begin[each] for each in left})
    moved_seconds = time.monotonic()
    before: dict[TopicPartition, int] = {}
    while left:
        for record in log.poll():
            where = TopicPartition(record.topic, record.partition)
            if record.offset < ends[where]:
                yield record
        positions = {each: log.consumer.position(each) for each in left}
        done = {each for each, position in positions.items() if position >= ends[each]}
        log.consumer.pause(*done)
        left -= done
        if positions != before:
            moved_seconds, before = time.monotonic(), positions
        elif time.monotonic() - moved_seconds > _PATIENCE_SECONDS:
            where = min(left)
            raise KafkaTimeoutError(
                f"{where}: no record from offset {positions[where]} on within "
                f"{_PATIENCE_SECONDS} s, though it ends at {ends[where]}"
            )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _json(data: bytes) -> Any:
    """Return the value of a JSON text, or the text if it is not JSON."""
    try:
        value = json.loads(data, parse_float=_finite, parse_constant=_finite)
        PLAIN["value"].of_json(value)
    except (ValueError, RecursionError, NoRecordError):
        return _text(data)
    return value


def _finite(text: str) -> float:
    """Return the number. JSON has no others: not NaN, and not one beyond a double's range."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


_READ: dict[str, Callable[[bytes], Any]] = {"text": _text, "json": _json, "hex": bytes.hex}


class _Shown:
    """Output of records, one per line."""

    def __init__(
        self, output: Output, arguments: argparse.Namespace, forms: Mapping[str, Convert]
    ) -> None:
        self._output, self._forms = output, forms
        self._read = {"key": _READ[arguments.key], "value": _READ[arguments.value]}

    def all(self, records: Iterable[ConsumerRecord | None], most: int | None = None) -> None:
        """Show records as they come, at most `most` of them."""
        shown = 0
        for record in records:
            if record is None:
                self._output.flush()
                continue
            self._show(record)
            shown += 1
            if shown == most:
                return

    def _show(self, record: ConsumerRecord) -> None:
        at_ms = record.timestamp_ms
        when = None if at_ms is None or at_ms == NO_TIMESTAMP else iso_time(at_ms)
        key, value = self._part("key", record.key), self._part("value", record.value)
        errors = _errors(record)
        headers = [{"key": name, **_fields("value", data, _text)} for name, data in record.headers]
        if self._output.as_json:
            self._output.document(
                {
                    "topic": record.topic,
                    "partition": record.partition,
                    "offset": record.offset,
                    "timestamp": when,
                    **key,
                    **value,
                    **errors,
                    "headers": headers,
                }
            )
            return
        cells = [f"{record.partition}:{record.offset}", when or "-"]
        cells += [_line(key["key"]), _line(value["value"])]
        cells += [f"{part}: {error['reason']}" for part, error in errors.items()]
        cells += [f"{header['key']}={_line(header['value'])}" for header in headers]
        self._output.line("  ".join(map(printable, cells)))

    def _part(self, name: str, data: Any) -> dict[str, Any]:
        if name in self._forms:
            return {name: self._forms[name](data)}
        return _fields(name, data, self._read[name])


def _errors(record: ConsumerRecord) -> dict[str, Any]:
    """Return the decoding errors of a record."""
    errors = {"key_error": record.key_error, "value_error": record.value_error}
    return {name: json_form.shown(error) for name, error in errors.items() if error is not None}


def _fields(name: str, data: bytes | None, read: Callable[[bytes], Any]) -> dict[str, Any]:
    """Return the field for some bytes, and one in base64 if `produce` needs it for the same bytes.

    A text is JSON with `value.format` `json`, and itself without.
    """
    if data is None:
        return {name: None}
    shown = read(data)
    is_json_text = read is _json and isinstance(shown, str)
    if is_json_text or _written(shown) != data:
        return {name: shown, name + BASE64: base64.b64encode(data).decode()}
    return {name: shown}


def _written(shown: Any) -> bytes | None:
    """Return the bytes that `produce` writes for a field, or None if it refuses the field."""
    try:
        return PLAIN["value"].of_json(shown)
    except NoRecordError:
        return None


def _line(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
