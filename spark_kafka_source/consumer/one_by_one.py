"""A poll's records one by one: what a loop over the consumer hands out."""

from collections.abc import Iterator

from spark_kafka_source.consumer.consumer_records import ConsumerRecord, ConsumerRecords
from spark_kafka_source.fetch.positions import Positions
from spark_kafka_source.topic_partition import TopicPartition


def one_by_one(records: ConsumerRecords, positions: Positions) -> Iterator[ConsumerRecord]:
    """Yield the records. The positions of their partitions move with each of them.

    A partition that is paused, revoked or moved meanwhile yields no more.
    """
    places = {each: positions[each] for each in records.partitions}
    ends = {each: position.next for each, position in places.items()}
    marks = {each: places[each].back_to(records.first_offset(each)) for each in places}
    for record in records:
        where = TopicPartition(record.topic, record.partition)
        position = places.get(where)
        if position is None:
            continue
        is_assigned = positions.get(where) is position
        if not is_assigned or position.paused or position.next is not marks[where]:
            del places[where]  # Paused, revoked or moved by the user.
            continue
        marks[where] = position.back_to(record.offset + 1)
        yield record
    for where, position in places.items():
        if position.next is marks[where]:
            position.next = ends[where]
