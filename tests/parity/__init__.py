"""The scenarios of the suites of Spark's own Kafka connector, run against it and against this one.

A module is a suite, a test function a scenario, written once; `source` runs it with either format.
What must differ is asserted for each, and explained in `differences.py`; `suites.py` counts.
"""
