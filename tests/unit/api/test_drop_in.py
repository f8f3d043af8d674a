"""Every field of the existing controller is in our schema and in the table of the docs, with a test that exists."""

import re
from pathlib import Path
from typing import Any

import pytest

from foresail.api.crds import DEFINITIONS, definition

ROOT = Path(__file__).parents[3]
SCHEMAS = {each.kind.name: definition(each)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for each in DEFINITIONS}
PLURALS = {each.kind.name: each.kind.plural for each in DEFINITIONS}


def upstream() -> dict[str, list[str]]:
    """Return the fields of each kind, by its plural; what they are is written down, nothing of the schema itself."""
    found: dict[str, list[str]] = {}
    fields: list[str] = []
    for line in (Path(__file__).parent / "upstream_fields.txt").read_text().splitlines():
        if line.startswith(" "):
            fields.append(line.strip())
        else:
            fields = found.setdefault(line, [])
    return found


def tables(page: str, row: str) -> dict[str, dict[str, str]]:
    """Return the second column of a page for each field, by kind."""
    sections = re.split(r"^## (\w+)$", (ROOT / "docs" / page).read_text(), flags=re.MULTILINE)[1:]
    return {
        kind: dict(re.findall(row, body, re.MULTILINE))
        for kind, body in zip(sections[::2], sections[1::2], strict=True)
    }


FIELDS = upstream()
TABLES = tables("contributing/drop-in.md", r"^\| `([^`]+)` \| `([^`]+)` \|$")
FOR_USERS = tables("reference/drop-in.md", r"^\| `([^`]+)` \| (.+) \|$")


def schema_at(schema: dict[str, Any], path: str) -> dict[str, Any] | None:
    """Return the schema of a field; None if it would be pruned."""
    node: dict[str, Any] | None = schema
    for word in re.findall(r"[^.\[\]{}]+|\[\]|\{\}", path):
        if node is None:
            return None
        if node.get("x-kubernetes-preserve-unknown-fields"):
            return node
        below = node.get("items") if word == "[]" else node.get("additionalProperties") if word == "{}" else None
        node = below if below is not None else (node.get("properties") or {}).get(word)
    return node


@pytest.mark.parametrize("kind", TABLES)
def test_every_field_of_the_existing_controller_is_kept_by_our_schema(kind: str) -> None:
    fields = FIELDS[PLURALS[kind]]
    assert len(fields) > 5
    assert [field for field in fields if schema_at(SCHEMAS[kind], field) is None] == []
    assert schema_at(SCHEMAS[kind], "spec.noSuchField") is None


@pytest.mark.parametrize("kind", TABLES)
def test_every_field_of_the_existing_controller_has_a_row_and_every_row_is_such_a_field(kind: str) -> None:
    fields, rows = set(FIELDS[PLURALS[kind]]), TABLES[kind]
    tops = {"spec", "status"}
    left_out = [
        field
        for field in fields - tops
        if not any(field == row or field.startswith((f"{row}.", f"{row}[")) for row in rows)
    ]
    assert left_out == []
    assert rows.keys() - fields == set()


def test_users_read_what_becomes_of_each_of_these_fields() -> None:
    assert {kind: [*rows] for kind, rows in FOR_USERS.items()} == {kind: [*rows] for kind, rows in TABLES.items()}


def test_all_kinds_of_the_existing_controller_have_a_table() -> None:
    assert {PLURALS[kind] for kind in TABLES} == FIELDS.keys()


@pytest.mark.parametrize("name", sorted({test for rows in TABLES.values() for test in rows.values()}))
def test_every_test_that_the_table_names_exists(name: str) -> None:
    files = [*(ROOT / "tests").rglob("test_*.py")]
    if name.endswith(".py"):
        assert name in {each.name for each in files}
    else:
        assert any(f"def {name}(" in each.read_text() for each in files)
