"""`python -m tools.fuzz.seeds`: make a new corpus.

Kafka's own classes made the responses and batches, for the tests of the codec. More batches are
ours, in every codec and framing. Logins are messages of the tests' servers. The corpus keeps no
keys: `stores` makes its own.
"""

import gzip
import shutil
from collections.abc import Iterator

import lz4.frame
import pyarrow as pa
import zstandard

from spark_kafka_source.net.sasl.logins import PasswordLogin
from spark_kafka_source.net.sasl.scram import Scram
from spark_kafka_source.protocol import encode
from spark_kafka_source.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from spark_kafka_source.protocol.messages.metadata import MetadataResponse
from spark_kafka_source.protocol.messages.sasl import (
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from spark_kafka_source.records import Codec, Record, encode_batch, encode_control_batch
from spark_kafka_source.records.batch import HEADER_BYTES, batches
from spark_kafka_source.records.compression import decompress
from spark_kafka_source.secret import Secret
from tests.net.sasl.scram_server import ScramServer
from tests.records.test_vectors import VECTORS
from tools import protocol_vectors as vectors
from tools.fuzz import frames, logins, options
from tools.fuzz.batches import OPTIONS_BYTES, WHERE
from tools.fuzz.responses import RESPONSES
from tools.fuzz.targets import CORPUS

Seeds = Iterator[tuple[str, bytes]]
"""Files by name, with their contents."""

_PLAIN = bytes(OPTIONS_BYTES)
_RECORDS = [
    Record(b"key", b"value", [("h1", b"1"), ("h2", None), ("é", b"")], 1_700_000_000_000),
    Record(None, b"", [], 1_700_000_000_005),
    Record(b"", None, [("", b"x" * 70)], 1_699_999_999_999, offset_delta=7),
    Record(b"k" * 130, b"v" * 200, [], 1_700_000_000_000, offset_delta=300),
]


def responses() -> Seeds:
    """Return Kafka's responses: of the oldest, the newest, and the first flexible version."""
    named = {(kind.__name__, version): place for place, (kind, version) in enumerate(RESPONSES)}
    found = [vector for vector in vectors.read() if (vector.name, vector.version) in named]
    lengths: dict[str, set[int]] = {}
    for vector in found:
        seen = lengths.setdefault(vector.name, set())
        if len(vector.data) not in seen:
            seen.add(len(vector.data))
            place = named[vector.name, vector.version]
            yield f"{vector.name}-v{vector.version}", bytes([place]) + vector.data


def _answers(*contents: bytes) -> bytes:
    return frames.SEPARATOR.join(contents)


def frames_() -> Seeds:
    """Return conversations without SASL, by PLAIN and by SCRAM, and of other servers."""
    keys = [ApiVersion(3, 0, 13), ApiVersion(17, 0, 1), ApiVersion(18, 0, 4), ApiVersion(36, 0, 2)]
    known = encode(ApiVersionsResponse(api_keys=keys), 4)
    metadata = b"\0" + encode(MetadataResponse(), 13)
    chosen = encode(SaslHandshakeResponse(0, ["PLAIN", "SCRAM-SHA-256"]), 1)
    let_in = b"\0" + encode(SaslAuthenticateResponse(0, None, b"", 1000), 2)
    first = b"r=ours-and-theirs,s=c2FsdA==,i=4096"
    challenge = b"\0" + encode(SaslAuthenticateResponse(0, None, first, 0), 2)
    refused = b"\0" + encode(SaslAuthenticateResponse(58, "no", b"", 0), 2)
    old = encode(ApiVersionsResponse(35, [ApiVersion(18, 0, 2)]), 0)
    yield "plaintext", b"\0" + _answers(known, metadata)
    yield "older", b"\0" + _answers(old, encode(ApiVersionsResponse(api_keys=keys), 2), metadata)
    yield "plain", b"\1" + _answers(known, chosen, let_in, metadata)
    yield "refused", b"\1" + _answers(known, chosen, refused)
    yield "scram", b"\2" + _answers(known, chosen, challenge, let_in)
    size = (len(known) + 4).to_bytes(4) + bytes(4)
    yield "stream", b"\x81" + size + known
    yield "http", b"\x81HTTP/1.1 400 Bad Request\r\n\r\n"
    yield "tls", b"\x81\x15\x03\x03\x00\x02\x02\x46"


def handshakes() -> Seeds:
    """Return alerts, a hello, and bytes that are not TLS."""
    yield "alert", bytes.fromhex("15030300020246")
    yield "handshake_failure", bytes.fromhex("15030300020228")
    hello = bytes.fromhex("0303") + bytes(32) + bytes.fromhex("00c02f0000050017000000")
    message = b"\x02" + len(hello).to_bytes(3) + hello
    yield "hello", b"\x16\x03\x03" + len(message).to_bytes(2) + message
    yield "http", b"HTTP/1.1 400 Bad Request\r\n\r\n"


def _transactions() -> bytes:
    first = encode_batch(_RECORDS, base_offset=0, producer_id=1, transactional=True)
    marker = encode_control_batch(commit=False, base_offset=400, producer_id=1)
    return first + marker + encode_batch(_RECORDS[:2], base_offset=401, codec=Codec.ZSTD)


def batches_() -> Seeds:
    """Return Kafka's batches and ours; two have other options for reading."""
    for number, data in enumerate(VECTORS.values()):
        yield f"kafka-{number:02}", _PLAIN + data
    for codec in Codec:
        yield f"{codec.name.lower()}", _PLAIN + encode_batch(_RECORDS, codec=codec)
    yield "tiny", _PLAIN + _tiny(Codec.NONE)
    marker = encode_control_batch(commit=False, base_offset=0, producer_id=1)
    yield "tiny-marker", b"\x23\0\0\0" + marker
    yield "aborted", b"\x22\0\0\0" + _transactions()
    yield "small-chunks", b"\x05\0\0\0" + encode_batch(_RECORDS * 3, codec=Codec.LZ4)
    yield "range", b"\x10\x05\x20\0" + _transactions()
    yield "unchecked", b"\x01\0\0\0" + encode_batch(_RECORDS)[:-1]
    many = [Record(b"%d" % n, b"v", [("h", b"%d" % n)] * (n % 3)) for n in range(90)]
    yield "many", b"\x04\0\0\0" + encode_batch(many)
    yield "at-the-end", _PLAIN + encode_batch(_RECORDS, base_offset=(1 << 63) - 1000)


def _facts(batch: bytes) -> bytes:
    return batch[:8] + batch[21:HEADER_BYTES]


_TINY = [Record(b"", b"a", [("", b"")], 0), Record(None, None, [], 0)]


def _tiny(codec: Codec) -> bytes:
    return encode_batch(_TINY, codec=codec, producer_id=1, transactional=True)


def rewritten() -> Seeds:
    """Return the batches with uncompressed records."""
    for name, data in batches_():
        if name.startswith(("many", "kafka-1", "unchecked", "tiny")):
            continue
        header, payload = next(batches(memoryview(data)[4:], WHERE, check_crcs=False))
        body = bytes(decompress(header.codec, payload, 1 << 20))
        yield name, data[:OPTIONS_BYTES] + _facts(data[OPTIONS_BYTES:]) + body
    for codec in Codec:
        body = _tiny(Codec.NONE)[HEADER_BYTES:]
        yield f"tiny-{codec.name.lower()}", _PLAIN + _facts(_tiny(codec)) + body
    body = encode_batch(_RECORDS * 2)[HEADER_BYTES:]
    for codec in Codec:
        facts = _facts(encode_batch(_RECORDS, codec=codec, base_offset=(1 << 63) - 1000))
        yield f"small-chunks-{codec.name.lower()}", b"\x04\0\0\0" + facts + body


def _member(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # Equal bytes at each run.


def recompressed() -> Seeds:
    """Return the framings of each codec."""
    body = encode_batch(_RECORDS)[HEADER_BYTES:]
    block: bytes = pa.Codec("snappy").compress(body, asbytes=True)
    payloads = {
        "gzip-members": (Codec.GZIP, _member(body[:50]) + _member(body[50:])),
        "snappy-bare": (Codec.SNAPPY, block),
        "lz4-linked": (
            Codec.LZ4,
            lz4.frame.compress(body, block_linked=True, content_checksum=True),
        ),
        "lz4-frames": (Codec.LZ4, lz4.frame.compress(body[:9]) + lz4.frame.compress(body[9:])),
        "zstd-frames": (Codec.ZSTD, zstandard.compress(body[:9]) + zstandard.compress(body[9:])),
        "zstd-unsized": (
            Codec.ZSTD,
            zstandard.ZstdCompressor(write_content_size=False).compress(body),
        ),
    }
    for codec in Codec:
        batch = encode_batch(_RECORDS, codec=codec)
        payloads[codec.name.lower()] = (codec, batch[HEADER_BYTES:])
    for codec in Codec:
        tiny = _tiny(codec)
        yield f"tiny-{codec.name.lower()}", _PLAIN + _facts(tiny) + tiny[HEADER_BYTES:]
    for name, (codec, payload) in payloads.items():
        yield name, _PLAIN + _facts(encode_batch(_RECORDS, codec=codec)) + payload
        yield (
            f"{name}-chunks",
            b"\x04\0\0\0" + _facts(encode_batch(_RECORDS, codec=codec)) + payload,
        )


def conversations() -> Seeds:
    """Return each call with true answers, and with some changed answers."""
    for question in range(7):
        yield f"true-{question}", bytes([question])
        for lie in range(4):
            numbers = bytes((question * 31 + lie * 17 + at * 7) % 256 for at in range(60))
            yield f"lies-{question}-{lie}", bytes([question, 1]) + numbers


_OFFSETS = {
    "format-2": b'{"version":2,"offsets":{"t":{"0":23,"1":0}},"starts":{"t":{"1":0}},'
    b'"leaderEpochs":{"t":{"0":4}},"topicIds":{"t":"3f8a5b1c-0000-4000-8000-000000000001"}}',
    "format-1": b'{"version":1,"offsets":{"t":{"0":23}}}',
    "initial": b'{"version":2,"offsets":{},"initial":true}',
    "spark": b'{"events":{"0":23,"1":9223372036854775807},"version":{"0":1}}',
    "beyond": b'{"version":1,"offsets":{"t":{"0":9223372036854775808}}}',
    "newer": b'{"version":3,"offsets":{}}',
    "list": b'[{"version":2}]',
    "deep": b'{"version":2,"offsets":{"t":' + b"[" * 300 + b"]" * 300 + b"}}",
    "deeper": b'{"version":2,"offsets":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}",
    "digits": b'{"version":2,"offsets":{"t":{"0":' + b"1" * 4400 + b"}}}",
}


def offsets() -> Seeds:
    yield from _OFFSETS.items()


def logs() -> Seeds:
    for name, line in _OFFSETS.items():
        yield name, b'v1\n{"batchWatermarkMs":0}\n' + line + b"\n-"
    yield "latin", b"v1\n\xe9\n{}"


_VALUES = {
    "assign": b'{"t":[0,1],"u":[2147483647]}',
    "startingOffsets": b'{"t":{"0":23,"1":-2}}',
    "startingOffsetsByTimestamp": b'{"t":{"0":1700000000000}}',
    "endingOffsets": b'{"t":{"0":-1}}',
    "endingOffsetsByTimestamp": b'{"t":{"0":1}}',
    "partitions": b"0,2,8-15",
    "columns": b"key,value,headers",
    "subscribePattern": b"^(events|logs)-[a-z]{1,3}(?=x)\\d+$",
    "maxBytesPerTrigger": b"64m",
    "maxTriggerDelay": b"15m",
    "startingTimestamp": b"1700000000000",
    "kafka.bootstrap.servers": b"SASL://[::1]:9092,host:1",
    "kafka.ssl.cipher.suites": b"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "kafka.ssl.enabled.protocols": b"TLSv1.2,TLSv1.3",
    "kafka.sasl.oauthbearer.token.endpoint.url": b"https://host:1/token?x",
    "kafka.sasl.login.refresh.window.factor": b"0.8",
}


def options_() -> Seeds:
    for name, value in _VALUES.items():
        yield name, bytes([options.NAMES.index(name)]) + value
    yield "deep", bytes([options.NAMES.index("assign")]) + b'{"t":' + b"[" * 3000
    yield "digits", bytes([options.NAMES.index("startingOffsets")]) + b"9" * 4400


def scram() -> Seeds:
    for place, hash_name in enumerate(("sha256", "sha512")):
        server = ScramServer("user", "canary-password", hash_name)
        client = Scram(
            f"SCRAM-SHA-{hash_name[3:]}",
            hash_name,
            PasswordLogin("user", Secret("canary-password")),
            nonce=logins.NONCE,
        )
        first = server.first(client.first())
        final = server.final(client.next(first) or b"")
        yield hash_name, bytes([place]) + first + logins.SEPARATOR + final
        yield f"{hash_name}-refused", bytes([place]) + first + logins.SEPARATOR + b"e=invalid-proof"


def oauthbearer() -> Seeds:
    yield "done", b""
    yield "refused", b'{"status":"invalid_token","scope":"a"}' + logins.SEPARATOR
    yield "deep", b'{"status":' + b"[" * 5000
    yield "digits", b'{"status":' + b"1" * 4400 + b"}"


def token_answers() -> Seeds:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    body = b'{"access_token":"abc.eyJleHAiOjk5OTk5OTk5OTl9.x","expires_in":3600}'
    sized = head + b"Content-Length: %d\r\n\r\n" % len(body)
    yield "token", sized + body
    yield "claims", sized + body.replace(b'"expires_in":3600', b'"x":         3600')
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    yield "chunks", chunked + b"8\r\n" + body[:8] + b"\r\n3B\r\n" + body[8:] + b"\r\n0\r\n\r\n"
    yield "negative-chunk", chunked + b"-5\r\n" + body
    yield "refused", b'HTTP/1.1 401 No\r\nContent-Length: 26\r\n\r\n{"error":"invalid_client"}\n'
    yield "moved", b"HTTP/1.1 302 Found\r\nLocation: http://x\r\n\r\n"
    yield "continued", b"HTTP/1.1 100 Go on\r\n\r\n" * 3 + sized + body
    yield "deep", head + b"\r\n" + b"[" * 5000


def jaas() -> Seeds:
    module = b"org.apache.kafka.common.security.plain.PlainLoginModule"
    yield "plain", module + b' required\n username="u\\"\\101" password=\'p\' /* c */ x=y;'
    yield "comments", b"// c\n" + module + b" optional debug=true; // end"
    yield "two", module + b" required; " + module + b" required;"
    yield "unended", b"/* " * 300 + module


_ALL = (
    responses, frames_, handshakes, batches_, rewritten, recompressed, conversations, offsets,
    logs, options_, scram, oauthbearer, token_answers, jaas,
)  # fmt: skip


def main() -> None:
    """Replace the corpus."""
    shutil.rmtree(CORPUS, ignore_errors=True)
    for make in _ALL:
        folder = CORPUS / make.__name__.removesuffix("_")
        folder.mkdir(parents=True)
        for name, data in make():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
