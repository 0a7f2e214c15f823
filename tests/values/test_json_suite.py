"""JSON-Schema-Test-Suite, out of jsonschema's source archive, against our references and types.

Each case of the suite has a schema, values, and whether each is valid. Compared are

- reading: a valid value is read by the type that is derived from the schema, or the schema is
  refused with a reason;
- writing: a valid value is written as it is; a value that is not valid even without the keywords
  that are not looked at (`RESTRICTING`) is refused;
- validation: `value.validate` agrees with the suite.

The remote schemas of the suite are references, by their URIs. `SCHEMAS` and `VALUES` have the
exceptions with their reasons.
"""

import json
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pyarrow as pa
import pytest

from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType, decode_column
from spark_kafka_source.values.json import JsonReader, JsonWriter, Validation, arrow_type
from spark_kafka_source.values.json.schema import SchemaGraph

VERSION = "4.26.0"
DRAFTS = {
    "draft4": ("http://json-schema.org/draft-04/schema#", jsonschema.Draft4Validator),
    "draft6": ("http://json-schema.org/draft-06/schema#", jsonschema.Draft6Validator),
    "draft7": ("http://json-schema.org/draft-07/schema#", jsonschema.Draft7Validator),
    "draft2019-09": (
        "https://json-schema.org/draft/2019-09/schema",
        jsonschema.Draft201909Validator,
    ),
    "draft2020-12": (
        "https://json-schema.org/draft/2020-12/schema",
        jsonschema.Draft202012Validator,
    ),
}
RESTRICTING = frozenset(
    [
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "contains"),
        *("minContains", "maxContains", "minProperties", "maxProperties", "propertyNames"),
        *("dependencies", "dependentRequired", "dependentSchemas", "not", "if", "then", "else"),
        *("unevaluatedItems", "unevaluatedProperties", "const", "required"),
    ]
)
"""The keywords that are not looked at. A missing field that is required may be written as null."""

SCHEMAS = [
    (
        r"draft-\d\d/schema#' leads nowhere|draft/20\d\d-\d\d/schema' leads nowhere",
        "no meta-schemas",
    ),
    (
        r"\$(dynamic|recursive)Ref .* where several anchors are dynamic",
        "it depends on the way there",
    ),
    ("holds itself", "a column has no recursive type"),
    ("no value fits all", "a place that is always empty has no type"),
    ("One type has one column", "a column has no union of objects or arrays and others"),
]
"""Why a schema is refused."""
VALUES = [
    (r"\bignores? (other non-)?[a-z]+|pseudo-array", "keywords for a type mean that type"),
    (r"^(recursive )?match: .*false|under the URN IDed", "keywords for objects mean objects"),
    (r"^(a )?float|with zero fractional|^an integer valued float", "1.0 is no BIGINT"),
    ("only the first item is validated|unique array extended", "a tuple is of its described items"),
    ("is only an annotation|validates true", "a text without its format is no value of the column"),
    ("an array is not an object", "a list of pairs is a map"),
    ("recognized members are accounted for", "a null where the schema has none is left out"),
]
"""Which valid values are refused, or the reverse."""


class Case(NamedTuple):
    """One schema of the suite."""

    draft: str
    file: str
    what: str
    schema: Any
    references: tuple[tuple[str, str], ...]
    tests: list[dict[str, Any]]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetch the archive into a temporary folder, and return the suite in it."""
    folder = tmp_path_factory.mktemp("suite")
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *(
            "--no-deps",
            "--no-binary",
            "jsonschema",
            "--dest",
            str(folder),
            f"jsonschema=={VERSION}",
        ),
    ]
    subprocess.run(command, check=True, timeout=300)
    with tarfile.open(folder / f"jsonschema-{VERSION}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / f"jsonschema-{VERSION}" / "json"


def cases(suite: Path, draft: str) -> Iterator[Case]:
    remotes = suite / "remotes"
    references = []
    for each in sorted(remotes.rglob("*.json")):
        name = each.relative_to(remotes).as_posix()
        if not name.startswith("draft") or name.startswith(f"{draft}/"):
            references.append((f"http://localhost:1234/{name}", each.read_text()))
    for file in sorted((suite / "tests" / draft).glob("*.json")):
        for group in json.loads(file.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict):
                schema = {"$schema": DRAFTS[draft][0], **schema}
            what, tests = group["description"], group["tests"]
            yield Case(draft, file.stem, what, schema, tuple(references), tests)


def reason(text: str, exceptions: list[tuple[str, str]]) -> str | None:
    return next((why for pattern, why in exceptions if re.search(pattern, text)), None)


@pytest.mark.long
@pytest.mark.parametrize("draft", DRAFTS)
def test_the_suite(suite: Path, draft: str) -> None:
    seen: Counter[str] = Counter()
    differ: list[str] = []
    for case in cases(suite, draft):
        text = SchemaText(SchemaType.JSON, json.dumps(case.schema), case.references)
        for outcome in outcomes(case, text):
            kind, _, said = outcome.partition(": ")
            seen[kind] += 1
            if said:
                differ.append(f"{case.file}: {case.what}: {kind}: {said}")
    assert not differ, "\n".join(differ)
    print(draft, dict(seen))
    # So many are compared at least.
    assert seen["read"] > 250
    assert seen["written"] > 200
    assert seen["validated"] > 500


def outcomes(case: Case, text: SchemaText) -> Iterator[str]:
    """Yield `kind`, or `kind: what is wrong` for a difference without a reason."""
    try:
        SchemaGraph.of(text)
    except SchemaError as error:
        yield "refused" if reason(str(error), SCHEMAS) else f"refused: {error}"
        return
    try:
        reader: JsonReader | None = JsonReader(arrow_type(text))
    except SchemaError as error:
        yield "refused" if reason(str(error), SCHEMAS) else f"refused: {error}"
        reader = None
    writer, validation = JsonWriter(text), Validation(text)
    for each in case.tests:
        data, valid, what = each["data"], each["valid"], each["description"]
        about = f"{what}: {json.dumps(data)[:60]}"
        invalid = validation.invalid(json.dumps(data).encode())
        # A meta-schema of one's own can turn validation off.
        agrees = (invalid is None) == valid or case.file == "vocabulary"
        yield "validated" if agrees else f"validated: {about}: {invalid}"
        if reader is not None and valid:
            yield read(reader, data, about)
        if data is not None and case.file not in ("unevaluatedProperties", "unevaluatedItems"):
            yield from written(case, writer, data, valid, about)


def read(reader: JsonReader, data: Any, about: str) -> str:
    column = pa.array([json.dumps(data).encode()], pa.binary())
    found = decode_column(reader, column, SchemaText(SchemaType.JSON, ""))
    if not found.status[0]:
        return "read"
    return "excepted" if reason(about, VALUES) else f"read: {about}: {found.reason(0)}"


def written(case: Case, writer: JsonWriter, data: Any, valid: bool, about: str) -> Iterator[str]:
    try:
        found = json.loads(writer.one(data))
    except UnencodableRowError as error:
        if valid:
            yield "excepted" if reason(about, VALUES) else f"written: {about}: {error.reason}"
        else:
            yield "refused value"
        return
    if valid:
        same = without_nulls(found) == without_nulls(data)
        yield "written" if same or reason(about, VALUES) else f"written: {about}: as {found}"
    elif by_type(case, data):
        yield "not looked at"
    else:
        yield "excepted" if reason(about, VALUES) else f"written: {about}: is not valid"


def by_type(case: Case, data: Any) -> bool:
    """Whether a value is valid without the keywords that are not looked at."""
    validation = Validation(
        SchemaText(
            SchemaType.JSON,
            json.dumps(stripped(case.schema)),
            tuple((name, json.dumps(stripped(json.loads(text)))) for name, text in case.references),
        )
    )
    return validation.invalid(json.dumps(data).encode()) is None


_NAMED = ("properties", "patternProperties", "$defs", "definitions")


def stripped(schema: Any) -> Any:
    """Return a schema without the keywords that are not looked at. `oneOf` becomes `anyOf`."""
    if isinstance(schema, list):
        return [stripped(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for name, each in schema.items():
        if name in _NAMED and isinstance(each, dict):
            found[name] = {inner: stripped(value) for inner, value in each.items()}
        elif name == "oneOf":
            found.setdefault("allOf", []).append({"anyOf": stripped(each)})
        elif name == "allOf":
            found.setdefault("allOf", []).extend(stripped(each))
        elif name not in RESTRICTING:
            found[name] = stripped(each)
    return found


def without_nulls(value: Any) -> Any:
    """Return a value without fields that are null: they are left out, or added."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value
