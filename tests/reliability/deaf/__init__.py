"""Brokers that say nothing, and topics that are gone, beside four clients at once.

    python -m tests.reliability.deaf [--rounds N] [--only WORD] [--page PATH]

Ours by both group protocols, confluent-kafka's and Kafka's Java consumer are members in processes
of their own (`member.py`, `JavaMember.java`), told what to do and heard by lines, which `diary.py`
reads. `first_contact.py`, `frozen.py` and `deleted.py` make the faults, once for all members at the
same time, and `test_deaf_brokers.py` holds ours to its bounds.
"""
