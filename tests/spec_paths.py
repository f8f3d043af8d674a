"""The fields of a schema by their paths, to lay one schema beside another."""

from typing import Any


def paths(schema: dict[str, Any], path: str = "") -> dict[str, str]:
    """Return the type of every field at every depth; `[]` stands for items, `{}` for the values of a map."""
    below: dict[str, Any] = {}
    for name, field in schema.get("properties", {}).items():
        below[f"{path}.{name}" if path else name] = field
    if "items" in schema:
        below[f"{path}[]"] = schema["items"]
    if isinstance(schema.get("additionalProperties"), dict):
        below[f"{path}{{}}"] = schema["additionalProperties"]
    found = {path: str(schema.get("type", "any"))} if path else {}
    for deeper, field in below.items():
        found |= paths(field, deeper)
    return found
