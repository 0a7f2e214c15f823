"""Brokers that are killed or stopped while a driver decides, and drivers killed with them.

`python -m tests.reliability.deciding --rounds 50 --page docs/exactly-once-faults.md` makes all of
a generation of transactions.
"""
