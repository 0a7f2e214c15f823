"""Drivers and workers that die or stand still, at any moment and at any statement.

`process` is a driver or a worker. `spark` plays Spark: it hands out tasks, tries them again,
commits micro-batches, and starts the query again. `copying` has the faults that a seed draws.
"""
