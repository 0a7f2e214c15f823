"""Kernels of Avro as machine code: see `records.machine_code`."""

from spark_kafka_source.records.machine_code import (
    BOUNDS,
    DATA,
    DOUBLES,
    GIVEN,
    INTEGERS,
    OCTETS,
    SINGLES,
    TABLE,
    WORDS,
    Loading,
)
from spark_kafka_source.values.avro.kernels import run
from spark_kafka_source.values.compiled import loader

_SCRATCH = (INTEGERS, SINGLES, DOUBLES)
load = loader(
    run, DATA, WORDS, GIVEN, GIVEN, GIVEN, "int64", TABLE, GIVEN, GIVEN, "int64",
    *(INTEGERS,) * 6, TABLE, *_SCRATCH, OCTETS, BOUNDS,
)  # fmt: skip
kernels = Loading(load).kernels

if __name__ == "__main__":
    load()  # for instance while an image is built, so that workers find the kernels in the cache
