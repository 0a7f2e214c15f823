"""Kafka's error codes with a remedy for each, in one table, and the errors of this package.

The table follows https://kafka.apache.org/protocol#protocol_error_codes and Kafka's own classes. A
test compares it with `org.apache.kafka.common.protocol.Errors`: which codes are retriable, and
whether the leaders or the coordinator must be looked up before that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, zip_longest
from types import MappingProxyType

from spark_kafka_source.secret import Secret, printable, shown
from spark_kafka_source.spelling import AS_OPTIONS, Spelling, as_written, current_spelling
from spark_kafka_source.topic_partition import TopicPartition

# The most characters of an argument in a text.
_MOST_SHOWN = 100


class Remedy(Enum):
    """The action of a client between an error and another try of the same request."""

    NONE = "do not try again"
    RETRY = "try again after a pause"
    REFRESH_METADATA = "ask for the leaders again, then try again"
    FIND_COORDINATOR = "look for the coordinator again, then try again"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row of Kafka's table of errors."""

    code: int
    name: str
    remedy: Remedy

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.remedy is not Remedy.NONE

    def __str__(self) -> str:
        return f"{self.name} ({self.code})"


FAIL = Remedy.NONE
RETRY = Remedy.RETRY
METADATA = Remedy.REFRESH_METADATA
COORDINATOR = Remedy.FIND_COORDINATOR

_TABLE = (
    (-1, "UNKNOWN_SERVER_ERROR", FAIL),
    (0, "NONE", FAIL),
    (1, "OFFSET_OUT_OF_RANGE", FAIL),
    (2, "CORRUPT_MESSAGE", RETRY),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", METADATA),
    (4, "INVALID_FETCH_SIZE", FAIL),
    (5, "LEADER_NOT_AVAILABLE", METADATA),
    (6, "NOT_LEADER_OR_FOLLOWER", METADATA),
    (7, "REQUEST_TIMED_OUT", RETRY),
    (8, "BROKER_NOT_AVAILABLE", FAIL),
    (9, "REPLICA_NOT_AVAILABLE", METADATA),
    (10, "MESSAGE_TOO_LARGE", FAIL),
    (11, "STALE_CONTROLLER_EPOCH", FAIL),
    (12, "OFFSET_METADATA_TOO_LARGE", FAIL),
    (13, "NETWORK_EXCEPTION", METADATA),
    (14, "COORDINATOR_LOAD_IN_PROGRESS", RETRY),
    (15, "COORDINATOR_NOT_AVAILABLE", COORDINATOR),
    (16, "NOT_COORDINATOR", COORDINATOR),
    (17, "INVALID_TOPIC_EXCEPTION", FAIL),
    (18, "RECORD_LIST_TOO_LARGE", FAIL),
    (19, "NOT_ENOUGH_REPLICAS", RETRY),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", RETRY),
    (21, "INVALID_REQUIRED_ACKS", FAIL),
    (22, "ILLEGAL_GENERATION", FAIL),
    (23, "INCONSISTENT_GROUP_PROTOCOL", FAIL),
    (24, "INVALID_GROUP_ID", FAIL),
    (25, "UNKNOWN_MEMBER_ID", FAIL),
    (26, "INVALID_SESSION_TIMEOUT", FAIL),
    (27, "REBALANCE_IN_PROGRESS", FAIL),
    (28, "INVALID_COMMIT_OFFSET_SIZE", FAIL),
    (29, "TOPIC_AUTHORIZATION_FAILED", FAIL),
    (30, "GROUP_AUTHORIZATION_FAILED", FAIL),
    (31, "CLUSTER_AUTHORIZATION_FAILED", FAIL),
    (32, "INVALID_TIMESTAMP", FAIL),
    (33, "UNSUPPORTED_SASL_MECHANISM", FAIL),
    (34, "ILLEGAL_SASL_STATE", FAIL),
    (35, "UNSUPPORTED_VERSION", FAIL),
    (36, "TOPIC_ALREADY_EXISTS", FAIL),
    (37, "INVALID_PARTITIONS", FAIL),
    (38, "INVALID_REPLICATION_FACTOR", FAIL),
    (39, "INVALID_REPLICA_ASSIGNMENT", FAIL),
    (40, "INVALID_CONFIG", FAIL),
    (41, "NOT_CONTROLLER", RETRY),
    (42, "INVALID_REQUEST", FAIL),
    (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", FAIL),
    (44, "POLICY_VIOLATION", FAIL),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", FAIL),
    (46, "DUPLICATE_SEQUENCE_NUMBER", FAIL),
    (47, "INVALID_PRODUCER_EPOCH", FAIL),
    (48, "INVALID_TXN_STATE", FAIL),
    (49, "INVALID_PRODUCER_ID_MAPPING", FAIL),
    (50, "INVALID_TRANSACTION_TIMEOUT", FAIL),
    (51, "CONCURRENT_TRANSACTIONS", RETRY),
    (52, "TRANSACTION_COORDINATOR_FENCED", FAIL),
    (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", FAIL),
    (54, "SECURITY_DISABLED", FAIL),
    (55, "OPERATION_NOT_ATTEMPTED", FAIL),
    (56, "KAFKA_STORAGE_ERROR", METADATA),
    (57, "LOG_DIR_NOT_FOUND", FAIL),
    (58, "SASL_AUTHENTICATION_FAILED", FAIL),
    (59, "UNKNOWN_PRODUCER_ID", FAIL),
    (60, "REASSIGNMENT_IN_PROGRESS", FAIL),
    (61, "DELEGATION_TOKEN_AUTH_DISABLED", FAIL),
    (62, "DELEGATION_TOKEN_NOT_FOUND", FAIL),
    (63, "DELEGATION_TOKEN_OWNER_MISMATCH", FAIL),
    (64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", FAIL),
    (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", FAIL),
    (66, "DELEGATION_TOKEN_EXPIRED", FAIL),
    (67, "INVALID_PRINCIPAL_TYPE", FAIL),
    (68, "NON_EMPTY_GROUP", FAIL),
    (69, "GROUP_ID_NOT_FOUND", FAIL),
    (70, "FETCH_SESSION_ID_NOT_FOUND", RETRY),
    (71, "INVALID_FETCH_SESSION_EPOCH", RETRY),
    (72, "LISTENER_NOT_FOUND", METADATA),
    (73, "TOPIC_DELETION_DISABLED", FAIL),
    (74, "FENCED_LEADER_EPOCH", METADATA),
    (75, "UNKNOWN_LEADER_EPOCH", RETRY),
    (76, "UNSUPPORTED_COMPRESSION_TYPE", FAIL),
    (77, "STALE_BROKER_EPOCH", FAIL),
    (78, "OFFSET_NOT_AVAILABLE", RETRY),
    (79, "MEMBER_ID_REQUIRED", FAIL),
    (80, "PREFERRED_LEADER_NOT_AVAILABLE", METADATA),
    (81, "GROUP_MAX_SIZE_REACHED", FAIL),
    (82, "FENCED_INSTANCE_ID", FAIL),
    (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", METADATA),
    (84, "ELECTION_NOT_NEEDED", METADATA),
    (85, "NO_REASSIGNMENT_IN_PROGRESS", FAIL),
    (86, "GROUP_SUBSCRIBED_TO_TOPIC", FAIL),
    (87, "INVALID_RECORD", FAIL),
    (88, "UNSTABLE_OFFSET_COMMIT", RETRY),
    (89, "THROTTLING_QUOTA_EXCEEDED", RETRY),
    (90, "PRODUCER_FENCED", FAIL),
    (91, "RESOURCE_NOT_FOUND", FAIL),
    (92, "DUPLICATE_RESOURCE", FAIL),
    (93, "UNACCEPTABLE_CREDENTIAL", FAIL),
    (94, "INCONSISTENT_VOTER_SET", FAIL),
    (95, "INVALID_UPDATE_VERSION", FAIL),
    (96, "FEATURE_UPDATE_FAILED", FAIL),
    (97, "PRINCIPAL_DESERIALIZATION_FAILURE", FAIL),
    (98, "SNAPSHOT_NOT_FOUND", FAIL),
    (99, "POSITION_OUT_OF_RANGE", FAIL),
    (100, "UNKNOWN_TOPIC_ID", METADATA),
    (101, "DUPLICATE_BROKER_REGISTRATION", FAIL),
    (102, "BROKER_ID_NOT_REGISTERED", FAIL),
    (103, "INCONSISTENT_TOPIC_ID", METADATA),
    (104, "INCONSISTENT_CLUSTER_ID", FAIL),
    (105, "TRANSACTIONAL_ID_NOT_FOUND", FAIL),
    (106, "FETCH_SESSION_TOPIC_ID_ERROR", RETRY),
    (107, "INELIGIBLE_REPLICA", FAIL),
    (108, "NEW_LEADER_ELECTED", FAIL),
    (109, "OFFSET_MOVED_TO_TIERED_STORAGE", FAIL),
    (110, "FENCED_MEMBER_EPOCH", FAIL),
    (111, "UNRELEASED_INSTANCE_ID", FAIL),
    (112, "UNSUPPORTED_ASSIGNOR", FAIL),
    (113, "STALE_MEMBER_EPOCH", FAIL),
    (114, "MISMATCHED_ENDPOINT_TYPE", FAIL),
    (115, "UNSUPPORTED_ENDPOINT_TYPE", FAIL),
    (116, "UNKNOWN_CONTROLLER_ID", FAIL),
    (117, "UNKNOWN_SUBSCRIPTION_ID", FAIL),
    (118, "TELEMETRY_TOO_LARGE", FAIL),
    (119, "INVALID_REGISTRATION", FAIL),
    (120, "TRANSACTION_ABORTABLE", FAIL),
    (121, "INVALID_RECORD_STATE", FAIL),
    (122, "SHARE_SESSION_NOT_FOUND", RETRY),
    (123, "INVALID_SHARE_SESSION_EPOCH", RETRY),
    (124, "FENCED_STATE_EPOCH", FAIL),
    (125, "INVALID_VOTER_KEY", FAIL),
    (126, "DUPLICATE_VOTER", FAIL),
    (127, "VOTER_NOT_FOUND", FAIL),
    (128, "INVALID_REGULAR_EXPRESSION", FAIL),
    (129, "REBOOTSTRAP_REQUIRED", FAIL),
    (130, "STREAMS_INVALID_TOPOLOGY", FAIL),
    (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", FAIL),
    (132, "STREAMS_TOPOLOGY_FENCED", FAIL),
    (133, "SHARE_SESSION_LIMIT_REACHED", RETRY),
    (134, "GROUP_DELETION_FAILED", FAIL),
    (135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", FAIL),
    (136, "CONTROLLER_ID_NOT_REGISTERED", FAIL),
)

ERRORS: Mapping[int, ErrorCode] = MappingProxyType(
    {code: ErrorCode(code, name, remedy) for code, name, remedy in _TABLE}
)
"""Kafka's error codes, by number."""

_BY_NAME = {row.name: row for row in ERRORS.values()}
_UNKNOWN_TOPIC = _BY_NAME["UNKNOWN_TOPIC_OR_PARTITION"]


def error_code(code: int) -> ErrorCode:
    """Return the row of a code in an answer.

    A code that is not in the table is fatal, and keeps its number.
    """
    return ERRORS.get(code) or ErrorCode(code, "UNLISTED_ERROR", Remedy.NONE)


def error_named(name: str) -> ErrorCode:
    """Return the row of the error with this name. Raises `KeyError` if Kafka has no such error."""
    return _BY_NAME[name]


_LONGEST_TEXT = 4_000
_MOST_KEPT = 200


def listed(items: Iterable[object], limit: int = 20) -> str:
    """Return a text that names the first `limit` items, and the number of the others."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return ", ".join(texts[:limit]) + more


def in_short(given: object) -> str:
    """Return what Python shows of an argument, up to 100 characters."""
    return repr(given)[:_MOST_SHOWN]


class KafkaError(Exception):
    """Base class of this package's errors. `remedy` tells whether and how to try again.

    `spelling` comes from the front whose call made the error. `__str__` names settings by it.
    """

    remedy: Remedy = Remedy.NONE
    spelling: Spelling = AS_OPTIONS

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        spelling = current_spelling()
        if spelling:
            self.spelling = spelling

    @property
    def retriable(self) -> bool:
        """Whether the same call may succeed later, as Java's `RetriableException` says."""
        return self.has_remedy

    @property
    def has_remedy(self) -> bool:
        """Whether a client tries again by itself. It does not after a timeout, which ended that."""
        return self.remedy is not Remedy.NONE

    def __str__(self) -> str:
        # Names and reasons from a broker may hold anything, and the text goes to logs and
        # terminals.
        text = printable(as_written(self._text(), self.spelling))
        return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."

    def _text(self) -> str:
        return super().__str__()


class LocalError(KafkaError):
    """An error on the client's side: an option, an argument, or the order of calls."""


class RemoteError(KafkaError):
    """An error on the other side: a broker, the network, or the records of a producer."""


class ConfigurationError(LocalError):
    """An option's value cannot be used. The text never holds the value of a secret option.

    `option` is the option's name in the front's spelling. The argument `found` has `{}` for each of
    `values`. All parts of the option's own value go into `values`, so that they can be left out.
    """

    def __init__(self, option: str, found: str, expected: str, *values: str | int | Secret) -> None:
        # A value may have megabytes, and errors show only its beginning.
        values = tuple(each[:_MOST_KEPT] if isinstance(each, str) else each for each in values)
        super().__init__()
        self.option = self.spelling.get(option, option)
        self.expected = as_written(expected, self.spelling)
        template = as_written(found, self.spelling)
        # `args` has the front's spelling, so that a pickled copy has the same text.
        self.args = (self.option, template, self.expected, *values)
        pieces = zip_longest(template.split("{}") if values else [template], map(shown, values))
        self.found = "".join(each or "" for each in chain.from_iterable(pieces))

    def without_values(self) -> "ConfigurationError":
        """Return the same error without any part of the option's value."""
        option, found, expected, *values = self.args
        return ConfigurationError(option, found, expected, *(Secret("") for _ in values))

    def _text(self) -> str:
        return f"Option '{self.option}': {self.found}. {self.expected}"


class UnsupportedVersionError(LocalError):
    """The broker, or Spark, is too old (or too new) for the request."""


class ClosedError(LocalError):
    """The client or connection was closed on this side, before or during the call."""


class ProtocolError(RemoteError):
    """Received bytes that break Kafka's protocol."""


class BrokerError(RemoteError):
    """A broker answered with an error code.

    `error` is the row of the table, `what` names the request, and `detail` is the broker's own
    text.
    """

    def __init__(self, error: ErrorCode, what: str, detail: str | None = None) -> None:
        super().__init__(error, what, detail)
        self.error, self.what, self.detail = error, what, detail
        self.remedy = error.remedy

    def _text(self) -> str:
        return f"{self.what}: {self.error}" + (f": {self.detail}" if self.detail else "")


class TopicNotFoundError(BrokerError):
    """The topic does not exist, or this user may not see it. Brokers do not tell which.

    `similar` is the name of a topic that may be meant.
    """

    def __init__(self, topic: str, similar: str | None = None) -> None:
        super().__init__(_UNKNOWN_TOPIC, f"Metadata of {topic}")
        self.args, self.topic, self.similar = (topic, similar), topic, similar

    def _text(self) -> str:
        text = f"There is no topic {self.topic!r}, or this user may not see it: {self.error}"
        return f"{text}. Did you mean {self.similar!r}?" if self.similar else text


class ConnectionFailedError(RemoteError):
    """A broker could not be reached, or the connection to it broke."""

    # The broker may have left the cluster, or another broker may lead its partitions now.
    remedy = Remedy.REFRESH_METADATA


class RebootstrapError(RemoteError):
    """A broker asks the client to forget all brokers, and to ask the bootstrap servers again.

    The broker left the cluster (KIP-1102), or its address was another broker's (KIP-1242).
    """

    remedy = Remedy.REFRESH_METADATA


class BootstrapError(RemoteError):
    """None of `kafka.bootstrap.servers` answered. The text has each address with its fault."""

    remedy = Remedy.RETRY

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__(tuple(failures))
        self.failures = tuple(failures)

    def _text(self) -> str:
        return (
            "No broker of 'kafka.bootstrap.servers' could be reached; tried "
            + "; ".join(self.failures)
            + ". Check the addresses, and that the brokers are up and reachable from here"
        )


class KafkaTimeoutError(RemoteError):
    """A timeout. The text has the reason of the wait, and its length."""

    @property
    def retriable(self) -> bool:
        """True: the same call may succeed later."""
        return True


class CorruptRecordError(RemoteError):
    """A corrupt batch or record in `topic_partition`, at `offset`. `reason` names the fault."""

    def __init__(self, topic_partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(topic_partition, offset, reason)
        self.topic_partition, self.offset, self.reason = topic_partition, offset, reason

    def _text(self) -> str:
        return f"{self.topic_partition} at offset {self.offset}: {self.reason}"


class UnsupportedRecordFormatError(CorruptRecordError):
    """A message set of format v0 or v1 (written before Kafka 0.11), or of a future format."""
