"""JSON of the message in a `google.protobuf.Any`, by Google's own rules in its package `protobuf`.

https://protobuf.dev/programming-guides/json/
"""

import json
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.extras import install_extra
from spark_kafka_source.values.protobuf.descriptors import Part

_OPTION = "value.convert.any.fields.to.json"


def json_of_any(descriptors: bytes, enums_as_ints: bool) -> Callable[[str, bytes], str]:
    """Return a function from the fields of an `Any` to JSON, as Spark's `from_protobuf` writes it.

    Names are those of the schema. `descriptors` is the `FileDescriptorSet` with all messages that
    may be in it. The function raises `ValueError` for other messages, and for bad bytes. Raises
    `ConfigurationError` if the package `protobuf` is not installed.
    """
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise ConfigurationError(
            _OPTION,
            "needs the package protobuf, which is not here",
            f"{install_extra('protobuf')}, or leave it out",
        )
    json_format = import_module("google.protobuf.json_format")
    any_class = import_module("google.protobuf.any_pb2").Any
    database = import_module("google.protobuf.descriptor_database").DescriptorDatabase()
    file_class = import_module("google.protobuf.descriptor_pb2").FileDescriptorProto
    for file in Part(descriptors).all(1):
        database.Add(file_class.FromString(file))
    pool = import_module("google.protobuf.descriptor_pool").DescriptorPool(database)
    decode_error = import_module("google.protobuf.message").DecodeError
    failures = (json_format.Error, decode_error, TypeError, KeyError, RecursionError)

    def show(type_url: str, value: bytes) -> str:
        message = any_class(type_url=type_url, value=value)
        try:
            fields = json_format.MessageToDict(
                message,
                preserving_proto_field_name=True,
                use_integers_for_enums=enums_as_ints,
                descriptor_pool=pool,
            )
            return json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except failures as error:
            raise ValueError(f"no JSON of {type_url!r:.200}") from error

    return show
