"""Fuzzing: for any bytes, wherever they come in,

1. what reads them comes to an end, within seconds;
2. in memory of at most `judge.MOST_TIMES` their size, and what the limits of its caller allow;
3. with a value, or an error of `KafkaError`'s tree that names topic, partition and offset (records)
   or the API (responses).

Each target is a function of bytes that raises where this does not hold: see `targets`. Run them by
`make fuzz SECONDS=60`, or `python -m tests.fuzz --seconds 60 batches responses`.
"""
