"""Texts name only options that exist: a name that is misspelt in an error leads nowhere."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import spark_kafka_source
from spark_kafka_source.consumer import consumer_config
from spark_kafka_source.options.declaration import Use
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.producer import producer_config
from spark_kafka_source.spark.all_options import OPTIONS
from spark_kafka_source.spark.source.options import OF_A_MEMBER

ROOT = Path(spark_kafka_source.__file__).parent
IN_QUOTES = re.compile(r"'((?:kafka|schema\.registry|key|value)\.[a-zA-Z0-9.]+)'")
WHOLE = re.compile(r"(kafka(?:\.[a-z0-9]+)+|schema\.registry(?:\.[a-z0-9]+)+)")
KNOWN = {
    *OPTIONS,
    *OF_A_MEMBER,
    *consumer_config.CONSUMER_OPTIONS,
    *producer_config.VOCABULARY.known,
    *(name for use in Use for name in other_names(use).refused),
}


def names(module: Path) -> Iterator[str]:
    """Yield the names of options in the texts of a module, but not in its docstrings."""
    source = module.read_text()
    if not WHOLE.search(source) and not IN_QUOTES.search(source):
        return
    tree = ast.parse(source)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) not in statements and isinstance(text := getattr(node, "value", None), str):
            whole = WHOLE.fullmatch(text)
            yield from [whole[1]] if whole else IN_QUOTES.findall(text)


def test_each_name_is_that_of_an_option() -> None:
    named = {name: module for module in ROOT.rglob("*.py") for name in names(module)}
    assert {"kafka.max.block.ms", "value.ignore.fields", "schema.registry.url"} <= named.keys()
    # A name may be only the beginning: 'kafka.ssl.keystore' is followed by '.location'.
    beginnings = {name.rpartition(".")[0] for name in KNOWN}
    assert not {name: named[name] for name in named.keys() - KNOWN - beginnings}
