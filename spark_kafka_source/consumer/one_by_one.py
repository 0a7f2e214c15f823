"""A poll's records one by one: what a loop over the consumer hands out."""

from collections.abc import Iterator
from functools import partial

from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords
from spark_kafka_source.fetch.offsets import OffsetAndEpoch
from spark_kafka_source.fetch.positions import Positions

# For each record: half the time of `OffsetAndEpoch(...)`, which is a function of Python's.
_mark = partial(tuple.__new__, OffsetAndEpoch)


def one_by_one(records: ConsumerRecords, positions: Positions) -> Iterator[ConsumerRecord]:
    """Yield the records. The positions of their partitions move with each of them.

    A partition that is paused, revoked or moved meanwhile yields no more.
    """
    places = {each: positions[each] for each in records.partitions}
    ends = {each: position.next for each, position in places.items()}
    marks = {each: places[each].back_to(records.first_offset(each)) for each in places}
    for where, position in places.items():
        mark = marks[where]
        epoch = -1 if mark is None else mark.leader_epoch
        for record in records.of(where):
            is_assigned = positions.get(where) is position
            if not is_assigned or position.paused or position.next is not mark:
                break  # Paused, revoked or moved by the user.
            position.next = mark = _mark((record.offset + 1, epoch))
            yield record
        else:
            if position.next is mark:
                position.next = ends[where]
