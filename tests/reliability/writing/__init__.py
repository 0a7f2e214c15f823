"""A `KafkaProducer` on three real brokers that fail it, and an independent reader that judges it.

One thread writes numbered records, with keys and without, one by one and as columns, while a fault
is made again and again (`faults`). Then confluent-kafka reads what is there (`judge`): each record
that was acknowledged must be there, with idempotence once, and in the order of its partition. The
producer has the defaults of its configuration, but for `enable.idempotence`.

`python -m tests.reliability.writing --rounds N [--page PATH]` writes the table.
"""
