"""A program that tries all interleavings of drivers, workers, brokers, and others who interfere.

The steps of `spark_kafka_source.exactly_once` run here as they are. The brokers are a model:
`brokers`. What Spark does around them is in `spark`. `exploring` tries all orders of their steps. A
process that takes no further step is dead, or stands still. So each crash and each pause of each
process, at each step, is among the orders. `mutants` are wrong protocols, which it must find.
"""
