"""The definitions of our kinds, as the chart ships them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import yaml

from foresail.api import crds
from foresail.api.meanings import MEANINGS
from foresail.api.schema import Schema, schema, with_defaults_told
from foresail.api.spec_fields import BACKUP_FIELDS, RESTORE_FIELDS, Treatment
from foresail.api.specs import BackupSpec, Duration, RestoreSpec
from tests.spec_paths import paths

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "foresail-crds" / "templates"


def test_the_chart_holds_what_the_types_say_and_nothing_else() -> None:
    shipped = {file.name: file.read_text() for file in CHART.iterdir()}
    assert shipped == crds.files(), "run `make crds`"


def test_writing_the_files_takes_away_those_of_kinds_that_are_no_more(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").write_text("kind: CustomResourceDefinition\n")
    crds.main(tmp_path)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == crds.files()


@pytest.mark.parametrize("name", crds.files())
def test_a_definition_is_below_256_kib_and_has_nothing_that_helm_would_replace(name: str) -> None:
    text = crds.files()[name]
    assert len(text.encode()) < 256 * 1024
    assert "{{" not in text


@pytest.mark.parametrize(
    "name", [name for name in crds.files() if name.startswith("nonadmin") and "locationrequests" not in name]
)
def test_what_velero_reports_is_mirrored_without_a_schema(name: str) -> None:
    version = yaml.safe_load(crds.files()[name])["spec"]["versions"][0]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    mirrors = [
        mirror
        for field, velero in status.items()
        if field.startswith("velero")
        for part, mirror in velero["properties"].items()
        if part in {"spec", "status"}
    ]
    assert mirrors
    told = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert all({name: mirror[name] for name in mirror if name != "description"} == told for mirror in mirrors)


@pytest.mark.parametrize(
    ("spec", "fields"), [(BackupSpec, BACKUP_FIELDS), (RestoreSpec, RESTORE_FIELDS)], ids=["backup", "restore"]
)
def test_every_field_is_classified_and_every_classified_field_is_there(
    spec: type, fields: dict[str, Treatment]
) -> None:
    assert set(fields) <= set(paths(schema(spec)))
    assert set(schema(spec)["properties"]) <= set(fields)


FREE = {"spec.restoreSpec.hooks.resources[].postHooks[].init.initContainers[]"}
"""Has no schema, as in Velero's own definition; self-service refuses it, and keeps no spec of more than 16 KiB."""


def unbounded(field: dict[str, Any], path: str) -> list[str]:
    """Return the paths of strings, lists and maps below a field that may be of any length."""
    bound = {"string": "maxLength", "array": "maxItems"}.get(field["type"], "")
    is_map = "additionalProperties" in field or field.get("x-kubernetes-preserve-unknown-fields")
    if is_map and path not in FREE:
        bound = "maxProperties" if "additionalProperties" in field else "a schema"
    found = [f"{path} has no {bound}"] if bound and bound not in field and "enum" not in field else []
    for name, below in field.get("properties", {}).items():
        found += unbounded(below, f"{path}.{name}")
    for sign, below in (("[]", field.get("items")), ("{}", field.get("additionalProperties"))):
        found += unbounded(below, path + sign) if below else []
    return found


@pytest.mark.parametrize(
    "name", [name for name in crds.files() if name.startswith("nonadmin") and "locationrequests" not in name]
)
def test_nothing_that_a_tenant_can_write_is_of_any_length(name: str) -> None:
    version = yaml.safe_load(crds.files()[name])["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert unbounded(spec, "spec") == []


def test_a_field_without_a_bound_is_found() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    assert unbounded({"type": "object", "properties": {"texts": texts}}, "spec") == [
        "spec.texts has no maxItems",
        "spec.texts[] has no maxLength",
    ]
    assert unbounded({"type": "object", "additionalProperties": {"type": "boolean"}}, "m") == ["m has no maxProperties"]
    assert unbounded({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "m") == ["m has no a schema"]


ROOTS = {each.kind.name: crds.definition(each)["spec"]["versions"][0]["schema"] for each in crds.DEFINITIONS}


def fields(of: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Return each field with its path; what the API server says about the metadata is its own."""
    for name, field in of.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        if below != "metadata":
            yield below, field
        yield from fields(field, below)
        yield from fields(field.get("items", {}), f"{below}[]")


@pytest.mark.parametrize("kind", ROOTS)
def test_every_field_has_a_meaning_for_kubectl_explain(kind: str) -> None:
    found = dict(fields(ROOTS[kind]["openAPIV3Schema"]))
    assert len(found) > 10
    assert [path for path, field in found.items() if not field.get("description", "").strip()] == []


@pytest.mark.parametrize("kind", ROOTS)
def test_a_meaning_is_a_sentence_that_names_the_field_in_other_words(kind: str) -> None:
    texts = {path: field["description"] for path, field in fields(ROOTS[kind]["openAPIV3Schema"]) if "." in path}
    assert {path: text for path, text in texts.items() if not text.endswith(".") or len(text) < 8} == {}


WITHOUT = re.compile(r"Default: |absent|empty|no limit|required|none is always allowed")


@pytest.mark.parametrize("kind", ["SelfServicePolicy", "SchedulePolicy", "Primer", "RestoreCheck"])
def test_every_optional_value_of_our_own_kinds_says_what_holds_without_it(kind: str) -> None:
    def optional(of: Schema, path: str) -> Iterator[str]:
        for name, field in of.get("properties", {}).items():
            is_optional = name not in of.get("required", ()) and "properties" not in field
            if is_optional and not WITHOUT.search(f"{of['description']} {field['description']}"):
                yield f"{path}.{name}"
            yield from optional(field, f"{path}.{name}")

    spec = ROOTS[kind]["openAPIV3Schema"]["properties"]["spec"]
    assert list(optional(spec, "spec")) == []


def test_every_meaning_is_that_of_a_field() -> None:
    texts = {field["description"] for root in ROOTS.values() for _, field in fields(root["openAPIV3Schema"])}
    assert [name for name, meaning in MEANINGS.items() if not any(text.startswith(meaning) for text in texts)] == []


class _Sample(msgspec.Struct, rename="camel"):
    """Two
    lines.
    """

    needed: str
    a_number: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    maybe: bool | None = None


def test_a_schema_says_what_the_type_says() -> None:
    assert schema(_Sample) == {
        "type": "object",
        "description": "Two lines.",
        "required": ["needed"],
        "properties": {
            "needed": {"type": "string"},
            "aNumber": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 5, "default": 1},
            "maybe": {"type": "boolean", "nullable": True},
        },
    }


def test_a_default_is_told_where_a_user_writes_and_set_nowhere() -> None:
    of = {"properties": {"many": {"items": {"properties": {"n": {"description": "Size.", "default": 1}}}}}}
    assert with_defaults_told(of, are_told=True)["properties"]["many"]["items"]["properties"]["n"] == {
        "description": "Size. Default: 1."
    }
    assert with_defaults_told(of, are_told=False)["properties"]["many"]["items"]["properties"]["n"] == {
        "description": "Size."
    }
    assert [
        path for root in ROOTS.values() for path, field in fields(root["openAPIV3Schema"]) if "default" in field
    ] == []


@pytest.mark.parametrize("kind", [float, int | str | None, Any])
def test_a_type_that_has_no_structural_schema_is_refused(kind: object) -> None:
    with pytest.raises(TypeError, match="has no"):
        schema(kind)


@pytest.mark.parametrize("text", ["0", "720h0m0s", "90m", "1.5h", "10s500ms", "999999h"])
def test_a_duration_is_what_go_reads(text: str) -> None:
    assert msgspec.convert(text, Duration) == text


@pytest.mark.parametrize("text", ["", "1", "1d", "-1h", "1h ", "soon", "9999999h", "1s1h"])
def test_a_duration_that_go_would_not_read_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, Duration)


def test_wide_tables_show_the_reasons() -> None:
    columns = {
        one.kind.name: {each["name"]: each for each in _version(one)["additionalPrinterColumns"]}
        for one in crds.DEFINITIONS
    }
    for kind in ("NonAdminBackup", "NonAdminRestore"):
        shown = columns[kind]
        wide = [name for name, each in shown.items() if each.get("priority") == 1]
        assert wide == ["Accepted", "Queued", "Succeeded", "Message"]
        assert shown["Accepted"]["jsonPath"] == ".status.conditions[?(@.type=='Accepted')].reason"
    assert columns["NonAdminRestore"]["Backup"]["jsonPath"] == ".spec.restoreSpec.backupName"


@pytest.mark.parametrize("one", crds.DEFINITIONS, ids=lambda one: one.kind.name)
def test_no_column_of_kubectl_get_is_raw_json(one: crds.Definition) -> None:
    """Kubectl prints an object or a list as JSON."""
    version = _version(one)
    for column in version["additionalPrinterColumns"]:
        found = version["schema"]["openAPIV3Schema"]
        for part in column["jsonPath"].removeprefix(".").split("[")[0].split("."):
            found = found.get("properties", {}).get(part, {})  # what Velero reports and metadata have no schema here
        is_filtered = "[" in column["jsonPath"]
        assert is_filtered or found.get("type") not in ("object", "array"), column["name"]


def _version(one: crds.Definition) -> dict[str, Any]:
    version: dict[str, Any] = crds.definition(one)["spec"]["versions"][0]
    return version
