"""Compilation of `.proto` files to descriptors, with Google's own compiler from `grpcio-tools`.

The compiler reads files, so the texts are put into a temporary folder. It runs in a process of its
own, so that no text can harm this one, and ends within `TIMEOUT_S`.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path, PurePosixPath

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.extras import install_extra
from spark_kafka_source.values.errors import SchemaError, quoted
from spark_kafka_source.values.protobuf.known_files import declared, folders
from spark_kafka_source.values.protobuf.schema import sized
from spark_kafka_source.values.schema_text import SchemaText

MAX_CHARACTERS = 4 << 20
MAX_REFERENCES = 1000
MOST_KEPT = 16
"""The most compiled texts that are kept. Compiling takes a process, and the schema of a column is
usually the schema that wrote its rows."""
TIMEOUT_S = 60.0

_COMPILER = "grpc_tools"
_MAIN = "schema-to-be-read.proto"
_TEXTS, _GIVEN, _RESULT = "texts", "given", "descriptors"
_MOST_SHOWN = 1000


def compiled(
    schema: SchemaText, given: tuple[bytes, ...] = (), wanted: tuple[str, ...] = (_MAIN,)
) -> bytes:
    """Return the `FileDescriptorSet` of a text and of its imports, which are its references.

    `given` are imports as `FileDescriptorProto`. `wanted` are names of references to be compiled in
    place of the text. The files of `known_files` need not be among the references. Raises
    `ConfigurationError` if the compiler is not installed, and `SchemaError` for a text that the
    compiler refuses.
    """
    if importlib.util.find_spec(_COMPILER) is None:
        raise ConfigurationError(
            "value.schema",
            "the text of a Protobuf schema needs the compiler of grpcio-tools, which is not here",
            f"{install_extra('protobuf')}, or give a FileDescriptorSet instead",
        )
    return _compiled(schema, given, wanted)


@lru_cache(maxsize=MOST_KEPT)
def _compiled(schema: SchemaText, given: tuple[bytes, ...], wanted: tuple[str, ...]) -> bytes:
    texts = {_MAIN: schema.text, **dict(_named(schema.references))}
    size = sum(map(len, texts.values()))
    if size > MAX_CHARACTERS:
        raise SchemaError("", f"{size} characters", f"Use at most {MAX_CHARACTERS}")
    with tempfile.TemporaryDirectory(prefix="proto-") as folder:
        for name, text in texts.items():
            path = Path(folder, _TEXTS, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        imports = b"".join(sized(1, each) for each in (*given, *declared()))
        Path(folder, _GIVEN).write_bytes(imports)
        return _run(Path(folder), wanted)


def _named(references: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the references. Their names must be plain paths within the folder."""
    if len(references) > MAX_REFERENCES:
        found = f"{len(references)} references"
        raise SchemaError("", found, f"Use at most {MAX_REFERENCES}")
    for name, _ in references:
        path = PurePosixPath(name)
        plain = name.isprintable() and not set(name) & {"\\", ":"} and len(name) <= 200
        if name == _MAIN or not plain or path.is_absolute() or str(path) != name:
            raise SchemaError("", f"an import by the name {quoted(name)}", "It is a plain path")
        if ".." in path.parts or not path.parts:
            raise SchemaError("", f"an import by the name {quoted(name)}", "It is a plain path")
    return references


def _run(folder: Path, wanted: tuple[str, ...]) -> bytes:
    result = folder / _RESULT
    # The texts come first, then the folders, then what is given.
    imports = (f"-I{name}={place}" for name, place in folders().items())
    command = [
        sys.executable, "-m", f"{_COMPILER}.protoc", "-I.", *imports,
        f"--descriptor_set_in=../{_GIVEN}", f"--descriptor_set_out=../{_RESULT}",
        "--include_imports", *wanted,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(  # noqa: S603  # of this interpreter, with nothing of the text
            command, cwd=folder / _TEXTS, env=environment, timeout=TIMEOUT_S, check=False,
            stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        found = f"the compiler did not end within {TIMEOUT_S:g} s"
        raise SchemaError("", found, "Use a smaller schema") from error
    if done.returncode or not result.exists():
        said = done.stderr.decode(errors="replace").replace(_MAIN, "the schema").strip()
        found = said[:_MOST_SHOWN] or f"the compiler ended with {done.returncode}"
        raise SchemaError("", found, "Imports are given as references of the schema")
    return result.read_bytes()
