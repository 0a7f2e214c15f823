"""Fuzzing. For any input bytes,

1. the reader ends within seconds;
2. its memory is at most `judge.MOST_TIMES` the input's size, plus the limits of its caller;
3. the result is a value, or a `KafkaError` that names topic, partition and offset (records) or the
   API (responses).

Each target is a function of bytes. It raises an error if a promise is broken: see `targets`. Run
them by `make fuzz SECONDS=60`, or `python -m tools.fuzz --seconds 60 batches responses`.
"""
