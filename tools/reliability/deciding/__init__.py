"""Brokers and processes that fail while a driver decides, and others that end its transactions.

`python -m tools.reliability.deciding --rounds 50 --page PAGE` makes rounds on a generation of
transactions.
"""
