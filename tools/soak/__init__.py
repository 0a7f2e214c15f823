"""A pipeline that runs for hours on three brokers with random faults, and the account of its rows.

A producer writes rows in transactions, and commits or aborts them (`writer`). A Spark query reads
the rows, typed, and writes them to another topic exactly once. Two more queries share a group
(`driver`). A consumer reads the copies (`reader`). A nemesis makes random faults from a seed: it
kills, freezes, cuts and slows (`nemesis`). librdkafka reads both topics. The judge accounts for
each row in each stage (`judge`). Samples show memory, threads, sockets and files of all processes
(`samples`).
"""
