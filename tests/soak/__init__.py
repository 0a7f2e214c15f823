"""A pipeline that runs for hours on three brokers while a nemesis harms it, and the account of it.

A producer writes rows in transactions, and commits or aborts them (`writer`). A Spark query reads
the rows, typed, and writes them to another topic exactly once; two more queries share a group
(`driver`). A consumer reads the copies (`reader`). A nemesis kills, freezes, cuts and slows at
random from a seed (`nemesis`). librdkafka reads both topics, and each row is accounted for in each
stage (`judge`). Memory, threads, sockets and files of all processes are sampled (`samples`).
"""
