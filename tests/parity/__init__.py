"""Scenarios from the test suites of Spark's own Kafka connector, run with it and with this source.

A module is a suite. A test function is a scenario, and `source` runs it with each format. The tests
assert intended differences for each format. `differences.py` explains them; `suites.py` counts.
"""
