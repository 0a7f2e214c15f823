"""Names that users give and that are no options: settings of Kafka's clients, and of others.

Each has what to say of it. The data source imports this only for a name that is none of its
options; clients in Python have it from the start, for their names in texts.
https://kafka.apache.org/documentation has all of Kafka's.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from spark_kafka_source.options.declaration import Use
from spark_kafka_source.options.judgement import OtherNames
from spark_kafka_source.options.unknown import PREFIX

_CLIENTS = Use.CONSUMER | Use.PRODUCER | Use.TOPIC_READ
_READERS = Use.READ | Use.CONSUMER | Use.TOPIC_READ
_WRITERS = Use.WRITE | Use.PRODUCER
_ALL = _READERS | _WRITERS
_IN_PYTHON = Use.CONSUMER | Use.TOPIC_READ

_WITHOUT_EFFECT: Mapping[Use, Mapping[str, str]] = {
    _ALL: {
        "all addresses of a host are tried in turn": "client.dns.lookup",
        "'kafka.socket.connection.setup.timeout.ms' does not grow here": (
            "socket.connection.setup.timeout.max.ms"
        ),
        "'kafka.bootstrap.servers' are asked again whenever the known brokers fail": (
            "metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy"
        ),
        "a name is resolved again at each try of a call, until the call's time is up": (
            "bootstrap.resolve.timeout.ms"
        ),
        "Java classes cannot be run here": "config.providers",
        "Java's security providers cannot be used here": """
            security.providers ssl.keymanager.algorithm ssl.provider
            ssl.secure.random.implementation ssl.trustmanager.algorithm
            """,
        "the Kerberos library manages the tickets": """
            sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
            sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
            """,
        "the broker checks a token, not the client": """
            sasl.oauthbearer.allow.unverified.audience sasl.oauthbearer.allow.unverified.issuer
            sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
            sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms
            sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
            sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
            sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
            """,
    },
    _CLIENTS: {
        "all figures are recorded": "metrics.recording.level",
    },
    _READERS: {
        "it is a producer's, and this only reads": """
            acks batch.size buffer.memory buffer.memory.allocation.strategy compression.gzip.level
            compression.lz4.level compression.type compression.zstd.level delivery.timeout.ms
            enable.idempotence key.serializer linger.ms max.block.ms
            max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
            partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
            partitioner.class partitioner.ignore.keys partitioner.rack.aware retries
            transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
            value.serializer
            """,
        "share groups are not read": "share.acknowledgement.mode share.acquire.mode",
        "it is internal to Kafka's Java client": (
            "internal.throw.on.fetch.stable.offset.unsupported"
        ),
    },
    Use.TOPIC_READ: {
        "a read of a topic joins no group, and commits nothing": """
            auto.commit.interval.ms enable.auto.commit exclude.internal.topics group.id
            group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
            max.poll.interval.ms partition.assignment.strategy session.timeout.ms
            """,
        "`start` says where the read begins": "auto.offset.reset",
        "the whole topic is read": "max.poll.records",
        "a read creates no topic": "allow.auto.create.topics",
    },
    Use.READ: {
        "the group has no members, as Spark plans the partitions": """
            group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
            max.poll.interval.ms partition.assignment.strategy session.timeout.ms
            """,
        "with 'kafka.group.id' each finished micro-batch is committed": "auto.commit.interval.ms",
        "topics are never created by reading": "allow.auto.create.topics",
        "records are not polled one by one; use 'maxOffsetsPerTrigger' or"
        " 'maxRecordsPerPartition'": "max.poll.records",
        "'subscribePattern' leaves internal topics out": "exclude.internal.topics",
        "the figures are in Spark's progress and `LagListener`": """
            enable.metrics.push metric.reporters metrics.num.samples metrics.recording.level
            metrics.sample.window.ms
            """,
    },
    _WRITERS: {
        "it is a consumer's, and this only writes": """
            allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs
            enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
            fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor
            heartbeat.interval.ms internal.throw.on.fetch.stable.offset.unsupported isolation.level
            key.deserializer max.partition.fetch.bytes max.poll.interval.ms max.poll.records
            partition.assignment.strategy session.timeout.ms share.acknowledgement.mode
            share.acquire.mode value.deserializer
            """,
        "a batch takes only the memory of its records": "buffer.memory.allocation.strategy",
        "a topic is known as long as the producer is": "metadata.max.idle.ms",
        "with 'kafka.partitioner.adaptive.partitioning.enable' a slow partition gets fewer"
        " records": "partitioner.availability.timeout.ms",
    },
    Use.WRITE: {
        "brokers have it only behind a switch for unstable features (KIP-939), and transactions"
        " end within 'kafka.transaction.timeout.ms'": "transaction.two.phase.commit.enable",
        "the figures are in Spark's progress": """
            enable.metrics.push metric.reporters metrics.num.samples metrics.recording.level
            metrics.sample.window.ms
            """,
    },
}
"""Settings of Kafka's clients that do nothing, and do no harm: for whom, why, and their names."""

_REFUSED: Mapping[Use, Mapping[str, str]] = {
    _ALL: {
        "Use 'kafka.sasl.oauthbearer.client.credentials.client.secret', or a token provider": """
            sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
            sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
            sasl.oauthbearer.assertion.claim.jti.include
            sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
            sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
            sasl.oauthbearer.assertion.private.key.passphrase
            sasl.oauthbearer.assertion.template.file
            """,
        "Leave it to the broker, which checks the token": "sasl.oauthbearer.jwt.validator.class",
        "Use 'kafka.ssl.keystore.location' and 'kafka.ssl.truststore.location'": (
            "ssl.engine.factory.class"
        ),
    },
    Use.CONSUMER: {
        "Give `key_deserializer` a function of bytes, as `bytes.decode`": "key.deserializer",
        "Give `value_deserializer` a function of bytes, as `bytes.decode`": "value.deserializer",
    },
    Use.TOPIC_READ: {
        "The table has bytes, or typed values: see 'value.format'": (
            "key.deserializer value.deserializer"
        ),
    },
    _IN_PYTHON: {
        "Java classes cannot be run here: look at the records of `poll`, and at commits in the"
        " callback of `commit_async`": "interceptor.classes",
    },
    Use.PRODUCER: {
        "Give `key_serializer` a function, as `str.encode`": "key.serializer",
        "Give `value_serializer` a function, as `str.encode`": "value.serializer",
        "Java classes cannot be run here: change records before `send`, and look at their outcome"
        " in `on_delivery`": "interceptor.classes",
        "Brokers have it only behind a switch for unstable features (KIP-939): a transaction ends"
        " within 'kafka.transaction.timeout.ms'": "transaction.two.phase.commit.enable",
    },
    Use.READ: {
        "Use 'startingOffsets'": "auto.offset.reset",
        "Keys are binary; decode them in the query": "key.deserializer",
        "Values are binary; decode them in the query": "value.deserializer",
        "With 'kafka.group.id' each finished micro-batch is committed": "enable.auto.commit",
        "Java classes cannot be run here": "interceptor.classes",
    },
    Use.WRITE: {
        "Rows are written as they are, texts in UTF-8: make bytes of them in the query": (
            "key.serializer value.serializer"
        ),
        "Java classes cannot be run here: change rows in the query": "interceptor.classes",
        "Each task has one of its own, with 'deliveryGuarantee' exactly-once": "transactional.id",
    },
}
"""Settings of Kafka's clients that users may rely on: for whom, what to do instead, the names."""

_INSTEAD: Mapping[Use, Mapping[str, str]] = {
    _ALL: {
        "Name one PEM file with the key and its certificates as 'kafka.ssl.keystore.location'": (
            "ssl.certificate.location ssl.certfile ssl.key.location ssl.keyfile"
        ),
        "Name PEM files as 'kafka.ssl.truststore.location' and 'kafka.ssl.keystore.location'": (
            "ssl.context"
        ),
        "Host names are checked, unless 'kafka.ssl.endpoint.identification.algorithm' is empty": (
            "ssl.check.hostname"
        ),
        "Certificates are checked: name the authority's file as 'kafka.ssl.truststore.location'": (
            "enable.ssl.certificate.verification"
        ),
        "Give `principal` and `keyTab` in 'kafka.sasl.jaas.config', as in docs/security.md": (
            "sasl.kerberos.keytab sasl.kerberos.principal"
        ),
        "Give each as `extension_NAME=\"VALUE\"` in 'kafka.sasl.jaas.config'": (
            "sasl.oauthbearer.extensions"
        ),
        "Leave it out: 'kafka.sasl.oauthbearer.token.endpoint.url' is enough": (
            "sasl.oauthbearer.method"
        ),
        "Give a `token_provider`: an object whose method `token` returns a `Token`": """
            oauth.cb sasl.oauth.token.provider
            """,
    },
    _CLIENTS: {
        "Leave it out: brokers tell their versions": (
            "api.version api.version.request broker.version.fallback"
        ),
    },
    _IN_PYTHON: {
        "Give a `ConsumerRebalanceListener` as the argument `listener`": (
            "consumer.rebalance.listener rebalance.callback.class rebalance.cb rebalance.listener"
        ),
        "Give `timeout_ms` to `poll`, which returns no records if none come. A loop over the"
        " consumer itself has no end": """
            consumer.timeout.ms poll.timeout.ms
            """,
        "A position moves when `poll` returns its records: set 'kafka.enable.auto.commit' to"
        " false, and `commit` the offsets after the records that you are done with": """
            enable.auto.offset.store offset.store.method
            """,
        "Compare `position` with `end_offsets`": "enable.partition.eof",
        "Give the callback to `commit_async`": (
            "default.offset.commit.callback offset.commit.cb on.commit"
        ),
        "It is a producer's": "message.timeout.ms",
    },
    Use.CONSUMER: {
        "Give the topics to `subscribe`": "topic topics",
    },
    Use.PRODUCER: {
        "Give the time that `send` may wait for room, as 'kafka.max.block.ms'": (
            "block.on.buffer.full"
        ),
    },
    Use.TOPIC_READ: {
        "Give the topics as `topic`": "topics subscribe assign",
        "Give the start as `start`": "begin since starting.offsets starting.timestamp",
        "Give the end, which is not included, as `to`": (
            "end stop until ending.offsets ending.timestamp"
        ),
        "Take batches of `read_topic_batches` until there is enough": "limit max.records n",
    },
}
"""Names of other clients' settings, and guesses: for whom, a whole advice, the names."""

_REGISTRY = "schema.registry."
_OF_REGISTRIES = {
    "basic.auth.credentials.source": "Leave it out: 'schema.registry.basic.auth.user.info' is"
    " enough",
    "bearer.auth.credentials.source": "Leave it out, and give 'schema.registry.bearer.auth.token'",
}
"""Names of other registry clients' settings, behind `schema.registry.`, and what to do instead.

The names of TLS are those of the clients of Kafka.
"""

_MEANT: Mapping[Use, Mapping[str, str]] = {
    _ALL: {
        "kafka.bootstrap.servers": "metadata.broker.list broker.list",
        "kafka.receive.buffer.bytes": "socket.receive.buffer.bytes",
        "kafka.send.buffer.bytes": "socket.send.buffer.bytes",
        "kafka.request.timeout.ms": "socket.timeout.ms",
        "kafka.metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
        "kafka.sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
        "kafka.sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
        "kafka.sasl.password": "sasl.plain.password",
        "kafka.sasl.username": "sasl.plain.username",
        "kafka.ssl.key.password": "ssl.password",
        "kafka.ssl.keystore.certificate.chain": "ssl.certificate.pem",
        "kafka.ssl.keystore.key": "ssl.key.pem",
        "kafka.ssl.truststore.certificates": "ssl.ca.pem",
        "kafka.ssl.truststore.location": "ssl.ca.location ssl.cafile",
    },
    _IN_PYTHON: {
        "kafka.retry.backoff.ms": "fetch.error.backoff.ms",
        "kafka.max.partition.fetch.bytes": "fetch.message.max.bytes",
        "kafka.default.api.timeout.ms": "metadata.fetch.timeout.ms",
        "kafka.fetch.max.bytes": "queued.max.messages.kbytes receive.message.max.bytes",
    },
    _WRITERS: {
        "kafka.batch.size": "batch.num.messages",
        "kafka.compression.type": "compression.codec",
        "kafka.max.in.flight.requests.per.connection": "max.in.flight",
        "kafka.max.request.size": "message.max.bytes",
        "kafka.retries": "message.send.max.retries",
        "kafka.delivery.timeout.ms": "message.timeout.ms",
        "kafka.buffer.memory": "queue.buffering.max.kbytes queue.buffering.max.messages",
        "kafka.linger.ms": "queue.buffering.max.ms",
        "kafka.acks": "request.required.acks",
    },
    Use.PRODUCER: {
        "kafka.max.block.ms": "metadata.fetch.timeout.ms",
        "kafka.request.timeout.ms": "timeout.ms",
    },
    Use.READ: {
        "subscribe": "topic topics",
    },
    Use.WRITE: {
        "topic": "topic topics",
    },
}
"""Names of other clients' settings, where a search by likeness misleads: for whom, ours, theirs."""

_DONE: Mapping[Use, Mapping[str, str]] = {
    _CLIENTS: {
        "client.dns.lookup": "use_all_dns_ips",
        "config.providers": "",
        "interceptor.classes": "",
        "metadata.recovery.strategy": "rebootstrap",
    },
    _IN_PYTHON: {
        "share.acknowledgement.mode": "implicit",
    },
    Use.TOPIC_READ: {
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": "false",
    },
    Use.PRODUCER: {
        "buffer.memory.allocation.strategy": "incremental",
        "partitioner.availability.timeout.ms": "0",
        "transaction.two.phase.commit.enable": "false",
    },
}
"""Values that ask for nothing beyond what is done anyway: for whom, the names, the values."""

# Names that are no settings of Kafka's clients, for the data source.
_MEANT_IN_QUERIES = {
    # Options of Spark's own functions for typed values.
    "avroschema": "value.schema",
    "messagename": "value.message",
    "descfilepath": "value.schema",
}
_REFUSED_IN_QUERIES = {
    "databricks.servicecredential": "Only Databricks' own connector takes it. For Amazon MSK give "
    "'kafka.sasl.mechanism' AWS_MSK_IAM with an instance profile or keys, for Azure Event Hubs "
    "PLAIN with a connection string, or OAUTHBEARER: see docs/databricks.md",
    "replaycheck": "Replays are always compared: leave it out. For 'none' give 'doubtfulReplays' "
    "accept",
}


@cache
def other_names(use: Use) -> OtherNames:
    """Return the names that are no options of this client."""
    is_query = use & Use.BOTH
    meant = _with_registries({PREFIX + name: ours for ours, name in _of(_MEANT, use)})
    if is_query:
        meant |= _MEANT_IN_QUERIES | {"topics": "topic" if use & Use.WRITE else "subscribe"}
    instead = _with_registries({PREFIX + name: advice for advice, name in _of(_INSTEAD, use)})
    for name, advice in _OF_REGISTRIES.items():
        instead |= {_REGISTRY + name: advice, f"{PREFIX}{_REGISTRY}{name}": advice}
    return OtherNames(
        reasons={PREFIX + name: reason for reason, name in _of(_WITHOUT_EFFECT, use)},
        refused={PREFIX + name: advice for advice, name in _of(_REFUSED, use)}
        | (_REFUSED_IN_QUERIES if is_query else {}),
        instead=instead,
        meant=meant,
        done={
            PREFIX + name: value
            for used, values in _DONE.items()
            if used & use
            for name, value in values.items()
        },
    )


def _with_registries(known: Mapping[str, str]) -> dict[str, str]:
    """Return what is said of the names, and the same of those of a registry's TLS.

    To a Kafka client, a name that begins with anything is a setting of Kafka's.
    """
    found = dict(known)
    for name, text in known.items():
        if name.startswith(f"{PREFIX}ssl."):
            ours = text.replace(PREFIX, _REGISTRY)
            found |= {
                name.replace(PREFIX, _REGISTRY): ours,
                name.replace(PREFIX, PREFIX + _REGISTRY): ours,
            }
    return found


def _of(table: Mapping[Use, Mapping[str, str]], use: Use) -> Iterator[tuple[str, str]]:
    """Yield the text and each name of the rows that are for this client."""
    for used, rows in table.items():
        if used & use:
            yield from ((text, name) for text, names in rows.items() for name in names.split())
