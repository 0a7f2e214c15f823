"""Faults on real brokers, again and again: few rounds in `make test`, many in `make reliability`.

`--reliability-table PATH` writes a table with a row for each test: its faults and its figures.
`--seed` makes the same random choices again.
"""
