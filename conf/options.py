"""Options of `format("pykafka")` with comments, to copy from: `.options(**STREAM)`.

Each value is what holds if it is left out, unless a comment says otherwise.
"""

COMMON = {
    # Where the brokers are; one that is up is enough, more survive its loss. Required.
    "kafka.bootstrap.servers": "broker1:9092,broker2:9092",
    # What to read. Exactly one of: subscribe, subscribePattern, assign. Required.
    "subscribe": "events",
    # "subscribePattern": "events-.*",
    # "assign": '{"events": [0, 1]}',
    #
    # One more column, an array of key and value.
    "includeHeaders": "false",
    # Leaves out records of transactions that are open or were aborted: read_committed.
    "kafka.isolation.level": "read_uncommitted",
    # Whether each record batch is held against its CRC-32C.
    "kafka.check.crcs": "true",
    # How much one fetch asks for: larger where the broker is far, smaller where memory is short.
    "kafka.max.partition.fetch.bytes": "1048576",
    # How long one request may take, and how long brokers are sought before the first contact.
    "kafka.request.timeout.ms": "30000",
    # How long something is tried again after errors that can heal, as while a leader moves.
    "kafka.default.api.timeout.ms": "60000",
    # How long a task waits for records that the driver saw.
    "kafkaConsumer.pollTimeoutMs": "120000",
}

STREAM = {
    **COMMON,
    # Where a new query starts: earliest, latest, or an offset for each partition. A query that has
    # a checkpoint goes on where it was.
    "startingOffsets": "latest",
    # At most so many offsets in a micro-batch; without it, all there is.
    "maxOffsetsPerTrigger": "1000000",
    # Finished micro-batches are committed to this group, for tools that watch its lag.
    "kafka.group.id": "billing",
}

BATCH = {
    **COMMON,
    # -2 is the earliest. All partitions must be named.
    "startingOffsets": '{"events": {"0": 23, "1": -2}}',
    # -1 is the latest. The end is not included.
    "endingOffsets": '{"events": {"0": 50, "1": -1}}',
}

WRITE = {
    # Required.
    "kafka.bootstrap.servers": "broker1:9092,broker2:9092",
    # Where the rows go; else a column of this name says it for each.
    "topic": "events",
    # lz4 and zstd cost little; left out, it is none.
    "kafka.compression.type": "lz4",
    # How many replicas have a batch before it counts as written.
    "kafka.acks": "all",
    # How long a batch that is not full waits for more rows.
    "kafka.linger.ms": "5",
    # How long a topic that is not there, and room for more rows, are waited for.
    "kafka.max.block.ms": "60000",
    # A row that takes more bytes is an error; brokers have `message.max.bytes` beside it.
    "kafka.max.request.size": "1048576",
}

SESSION = {
    # Set when the session starts. Makes small tasks cheap: Spark 4.1 and newer.
    "spark.python.unix.domain.socket.enabled": "true",
}
