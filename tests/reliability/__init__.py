"""Faults on real brokers, again and again: few rounds in `make test`, many in `make reliability`.

What each test was put through, and what came of it, is a row of the table that
`--reliability-table PATH` writes. `--seed` has the same random choices made again.
"""
