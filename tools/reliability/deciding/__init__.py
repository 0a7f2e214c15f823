"""Brokers that are killed or stopped while a driver decides, and drivers killed with them.

`python -m tools.reliability.deciding --rounds 50 --page PAGE` makes all of a generation of
transactions.
"""
