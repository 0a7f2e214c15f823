"""Values of options for reading and writing, in JSON and other forms."""

from collections.abc import Callable

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.all_options import OPTIONS
from spark_kafka_source.spark.options import parse_sink_options, parse_source_options
from tools.certificates import authority

_PLACES = ("location", "keytab", "principal", "service.name")
"""Options with file names are not fuzzed, since they may read any file of this machine."""

_SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")
_JSON = (
    "assign", "startingOffsets", "startingOffsetsByTimestamp", "endingOffsets",
    "endingOffsetsByTimestamp", "partitions", "columns", "subscribePattern",
)  # fmt: skip
NAMES = [*_JSON * 4, *sorted(name for name in OPTIONS if not name.endswith(_PLACES))]
"""Options that the first byte of an input selects from."""

_BASE = {"kafka.bootstrap.servers": "broker:9092"}
_TO_READ = {"subscribe": "t"}
_BY_PREFIX = {
    # The test has its own authority, since reading the system's takes milliseconds.
    "kafka.ssl.": {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.certificates": authority().certificate_pem,
    },
    "kafka.sasl.": {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
        'required username="u" password="p";',
    },
}


def options(data: bytes) -> None:
    """A byte selects the option. The value follows."""
    name = NAMES[data[0] % len(NAMES)] if data else NAMES[0]
    given = dict(_BASE)
    for prefix, others in _BY_PREFIX.items():
        if name.startswith(prefix):
            given |= others
    given[name] = data[1:].decode(errors="replace")
    _understand(parse_source_options, given if name in _SUBSCRIPTIONS else _TO_READ | given)
    _understand(parse_sink_options, given)


def _understand(parse: Callable[[dict[str, str]], object], given: dict[str, str]) -> None:
    try:
        parse(given)
    except ConfigurationError as error:
        assert error.option
        assert error.expected
