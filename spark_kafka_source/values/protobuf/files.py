"""Descriptors of a schema as registries have it: texts, files in base64, and imports of both.

A registry gives the text of a `.proto` file, or a `FileDescriptorProto` in base64, as confluent's
Python client registers it. Only texts need a compiler.
"""

import base64
import re
from collections.abc import Mapping

from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.protobuf.descriptors import Part
from spark_kafka_source.values.protobuf.known_files import known_file
from spark_kafka_source.values.protobuf.schema import sized
from spark_kafka_source.values.protobuf.text import compiled
from spark_kafka_source.values.protobuf.wire import WireError, wire_fields
from spark_kafka_source.values.schema_text import SchemaText, SchemaType

_SPACES = re.compile(r"\s+")
_FILE = 1
"""The field of a `FileDescriptorSet` with its files."""
_NAME, _IMPORT = 1, 3
"""The fields of a `FileDescriptorProto` with its name, and with the names of its imports."""


def descriptors_of(schema: SchemaText | bytes) -> bytes:
    """Return the `FileDescriptorSet` of a schema, whose last file is the schema itself.

    Bytes are one already. A text is a `.proto` file, or in base64 a `FileDescriptorProto` or a
    `FileDescriptorSet`, and so are its references. Raises `SchemaError`, and `ConfigurationError`
    for a `.proto` file if the compiler is not installed.
    """
    if isinstance(schema, bytes):
        return schema
    if schema.type is not SchemaType.PROTOBUF:
        raise SchemaError("", f"a schema of {schema.type.value}", "It must be one of PROTOBUF")
    try:
        return _set_of(schema)
    except WireError as error:
        expected = "It is a FileDescriptorSet, or a FileDescriptorProto, in base64"
        raise SchemaError("", f"no descriptors: {error}", expected) from error


def _set_of(schema: SchemaText) -> bytes:
    main = _from_base64(schema.text)
    files: dict[str, bytes] = {}
    texts = []
    for name, text in schema.references:
        descriptors = _from_base64(text)
        if descriptors is None:
            texts.append((name, text))
        else:
            *imported, file = descriptors
            # A registry knows the file by the name of the reference.
            files |= _by_name(imported) | {name: file + sized(_NAME, name)}
    with_texts = SchemaText(schema.type, "" if main else schema.text, tuple(texts))
    if main is None:
        return compiled(with_texts, tuple(files.values()))
    *imported, file = main
    files = _by_name(imported) | files
    if texts:
        names = tuple(name for name, _ in texts)
        files |= _by_name(_files(compiled(with_texts, tuple(files.values()), names)))
    known = _known({**files, "": file})
    return b"".join(sized(_FILE, each) for each in (*known.values(), *files.values(), file))


def _from_base64(text: str) -> list[bytes] | None:
    """Return the files of descriptors in base64, or None for a `.proto` file, which is not base64.

    Both kinds of descriptors begin with field 1, which is all that a set has. There it is a file,
    which has a control character in front of its name. In a file it is the name.
    """
    try:
        data = base64.b64decode(_SPACES.sub("", text), validate=True)
    except ValueError:
        return None
    if not data:
        return None
    fields = list(wire_fields(data))
    is_set = all(
        number == _FILE and isinstance(value, bytes) and not _is_name(value)
        for number, value in fields
    )
    return _files(data) if is_set else [data]


def _is_name(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _files(data: bytes) -> list[bytes]:
    """Return the files of a set."""
    return list(Part(data).all(_FILE))


def _by_name(files: list[bytes]) -> dict[str, bytes]:
    return {Part(file).text(_NAME): file for file in files}


def _known(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that are imported and not given, as far as they are known."""
    imports: dict[str, bytes] = {}
    left = list(files.values())
    while left:
        for each in Part(left.pop()).all(_IMPORT):
            name = each.decode(errors="replace")
            if name not in files and name not in imports and (file := known_file(name)):
                imports[name] = file
                left.append(file)
    return imports
