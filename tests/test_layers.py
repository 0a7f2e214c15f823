"""Allowed imports by the layers of the page on architecture, in each module's syntax tree."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import spark_kafka_source

ROOT = Path(spark_kafka_source.__file__).parent
PACKAGE = ROOT.name
BASE = {"errors", "denials", "options", "topic_partition", "secret", "spelling", "timestamps"} | {
    "lazily",
    "version",
    "chance",
    "forks",
    "extras",
    "logs",
}
LAYERS = [
    *("protocol", "records", "values", "net", "registry", "typed", "client", "telemetry"),
    *("fetch", "groups"),
    *("consumer", "producer", "dead_letters", "admin", "exactly_once"),
]
BELOW = {layer: BASE.union(LAYERS[:place]) for place, layer in enumerate([*LAYERS, "spark"])}
MAY_IMPORT = BELOW | {
    "topic_partition": {"secret"},
    "errors": {"topic_partition", "secret", "spelling"},
    "denials": {"errors"},
    "secret": set[str](),
    "spelling": {"logs"},
    "lazily": set[str](),
    "chance": set[str](),
    "extras": set[str](),
    "logs": set[str](),
    "forks": {"errors"},
    "version": set[str](),
    "options": {"errors", "secret"},
    "timestamps": {"errors"},
    # The layer of sockets and the layer of records do not know each other.
    "records": BASE,
    "values": BASE | {"records"},
    "net": BASE | {"protocol"},
    "registry": BASE | {"records", "values", "net"},
    "client": BASE | {"protocol", "net"},
    "telemetry": BASE | {"protocol", "records", "net", "client"},
    "groups": BASE | {"protocol", "net", "client"},  # `groups` must not import `fetch`.
    # `producer` and `consumer` must not import each other. A consumer's bad records become letters
    # through the module that is above `producer` and hides it.
    "consumer": BELOW["consumer"] | {"dead_letters"},
    # One method of `KafkaAdmin` imports it when it is called: it aborts nothing that is decided.
    "admin": BELOW["admin"] | {"exactly_once"},
    "dead_letters": BASE | {"protocol", "records", "net", "typed", "client", "producer"},
    "producer": BASE | {"protocol", "records", "net", "typed", "client", "telemetry", "groups"},
    "doctor": BASE | {"protocol", "net", "registry", "client", "fetch"},
    "command_line": BASE.union(LAYERS, {"doctor", "testing"}),
    "__main__": {"command_line"},
    "testing": BASE.union(LAYERS),
    "aio": BASE
    | {"protocol", "records", "net", "typed", "client", "fetch", "groups"}
    | {"consumer", "producer"},
    "demo": BASE.union(LAYERS, {"spark", "testing", "__init__"}),
    "__init__": {
        "aio",
        "lazily",
        "spark",
        "admin",
        "client",
        "consumer",
        "dead_letters",
        "fetch",
        "groups",
        "producer",
        "net",
        "errors",
        "forks",
        "secret",
        "topic_partition",
        "typed",
        "version",
    },
}
"""The layers within the package. Each may also import itself."""
MAY_TOUCH = {
    "socket": {"net", "testing"},
    "ssl": {"net", "testing"},
    "cryptography": {"net", "testing"},
    "pyspark": {"spark", "demo", "doctor"},
    "numpy": {"records", "values", "registry", "typed", "producer"},
    "pyarrow": {
        *("records", "values", "registry", "typed", "consumer", "producer", "admin", "aio"),
        *("spark", "command_line", "testing"),
    },
    "crc32c": {"records"},
    "lz4": {"records"},
    "zstandard": {"records"},
    "pickle": set[str](),
}
"""External modules that only some layers may import."""
DIRECTIONS = {"source", "sink"}
"""The packages within `spark` that must not import each other."""
OF_BOTH = {"__init__", "all_options", "checkpoint", "data_source", "options"} | {
    *("lag_listener", "prometheus_lag_listener"),
}
"""The modules above both packages. The rest of `spark` is below them."""
TOOLS_MAY_IMPORT = {
    *("tests.exactly_once.judge", "tests.exactly_once.query", "tests.exactly_once.steps"),
    *("tests.net.sasl.scram_server", "tests.producer.reading"),
    *("tests.protocol.messages", "tests.protocol.oracle", "tests.records.test_vectors"),
    *("tests.registry.framing_oracle", "tests.security.options", "tests.security.servers"),
    *("tests.spark.sink.settings", "tests.spark.typed_rows"),
    *("tests.values.avro_fit_oracle", "tests.values.avro_oracle", "tests.values.avro_pairs"),
    *("tests.values.avro_schemas", "tests.values.engines", "tests.values.protobuf_oracle"),
    *("tests.values.protobuf_schemas", "tests.values.protobuf_wire"),
    *("tests.values.test_avro_cases", "tests.values.test_protobuf_cases"),
}
"""Modules of tests that tools use too. A new helper of both belongs to `tools`."""
MODULES = sorted(ROOT.rglob("*.py"))
MOST_LINES = 400


def imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            source = node.module or ""
            yield from (
                [f"{source}.{n.name}" for n in node.names] if source == PACKAGE else [source]
            )


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_a_layer_imports_only_those_below_it(module: Path) -> None:
    layer = module.relative_to(ROOT).parts[0].removesuffix(".py")
    for top, *rest in (name.split(".") for name in imports(module)):
        if top == PACKAGE:
            assert (rest or ["__init__"])[0] in MAY_IMPORT[layer] | {layer}
        assert layer in MAY_TOUCH.get(top, {layer})
        assert top not in {"tests", "tools"}


@pytest.mark.parametrize(
    "module", sorted((ROOT / "spark").rglob("*.py")), ids=lambda path: path.stem
)
def test_what_reads_and_what_writes_know_nothing_of_each_other(module: Path) -> None:
    place = module.relative_to(ROOT / "spark").parts[0].removesuffix(".py")
    if place in OF_BOTH:
        return
    for name in imports(module):
        if name.startswith(f"{PACKAGE}.spark."):
            found = name.split(".")[2]
            assert found not in OF_BOTH
            assert found not in DIRECTIONS - {place}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """An import within a function is left out: it runs later."""
    names = {name_of(module) for module in MODULES}
    imported = {name_of(module): set(imported_at_once(module, names)) for module in MODULES}
    list(TopologicalSorter(imported).static_order())  # Raises `CycleError`.


def name_of(module: Path) -> str:
    return ".".join(module.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def imported_at_once(module: Path, names: set[str]) -> Iterator[str]:
    """Yield the modules that a module imports at its start."""
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module in names:
            for name in node.names:
                within = f"{node.module}.{name.name}"
                yield within if within in names else node.module


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(ROOT)))
def test_a_module_of_more_than_400_lines_says_why(module: Path) -> None:
    text = module.read_text()
    if text.count("\n") > MOST_LINES:
        assert "long" in (ast.get_docstring(ast.parse(text)) or "")


def test_every_layer_has_its_place() -> None:
    found = {module.relative_to(ROOT).parts[0].removesuffix(".py") for module in MODULES}
    assert found == set(MAY_IMPORT)


def test_tools_import_from_tests_only_oracles_and_judges() -> None:
    found = {
        each
        for module in sorted((ROOT.parent / "tools").rglob("*.py"))
        for each in imports(module)
        if each.split(".")[0] == "tests"
    }
    assert found == TOOLS_MAY_IMPORT
