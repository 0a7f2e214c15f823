"""Silent brokers, and deleted topics, with four clients at once.

    python -m tools.reliability.deaf [--rounds N] [--only WORD] [--page PATH]

The clients are ours by both group protocols, confluent-kafka's, and Kafka's Java consumer. Each
member is a process (`member.py`, `JavaMember.java`) that takes orders and reports its acts by
lines, which `diary.py` reads. `first_contact.py`, `frozen.py` and `deleted.py` make the faults, at
the same time for all members. `test_deaf_brokers.py` checks the bounds of our clients.
"""
