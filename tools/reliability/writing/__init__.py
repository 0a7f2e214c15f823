"""A `KafkaProducer` on three real brokers with faults, and an independent reader that judges it.

One thread writes numbered records, with and without keys, one by one and as columns, while a fault
is made again and again (`faults`). Then confluent-kafka reads the topic (`judge`). It must have
each acknowledged record, with idempotence once, and in the order of its partition. The producer has
its default configuration, except `enable.idempotence`.

`python -m tools.reliability.writing --rounds N [--page PATH]` writes the table.
"""
